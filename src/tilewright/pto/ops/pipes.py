"""Core-to-core pipes: queues between the cube function and the vector functions of a kernel.

A queue is as long as it has to be, and an entry of tiles is what was valid of the tile that was pushed. Entries in
global memory lie in slots that are used again once they are free.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT32
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import known, tile_type
from tilewright.pto.errors import PtoAttributeError, PtoOperandError
from tilewright.pto.machine.cores import CUBE, POPS, PUSHES, Entry, number
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.signals import pop, push, signal, wait
from tilewright.pto.machine.tiles import cover, get_cell, moved, read_all, set_cell, static
from tilewright.pto.machine.values import Tile, View
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare, number_of, unmeant
from tilewright.pto.ops.buffers import fresh
from tilewright.pto.text.form import free
from tilewright.pto.types import TensorView, TileBuf
from tilewright.records import record

_FAMILY = "pipes between passes"
_RANGES = {
    "id": (0, 1 << 31),
    "split": (0, 2),
    "dir_mask": (1, 3),
    "slot_size": (1, 1 << 31),
    "slot_num": (4, 8),
    "local_slot_num": (1, 8),
    "size": (1, 1 << 31),
}
"""The least and the most that each attribute may be."""


def _in_range(op: Op, _: Constants) -> None:
    """Refuse a number that no pipe has."""
    both = number_of(op, "dir_mask") == 3
    for name, (least, most) in _RANGES.items():
        value, limit = number_of(op, name), most // 2 if both and name == "local_slot_num" else most
        if value is not None and not least <= value <= limit:
            message = f"`{name}` of `{op.name}` is {value}"
            allowed = f"it is {least} to {limit}" if limit < 1 << 31 else f"it is {least} or more"
            raise PtoAttributeError(message, help=allowed)


@declare("pto.reserve_buffer import_reserved_buffer", free("", "i"), rule=_in_range)
def _reserve(m: Machine, op: Op) -> Expr:
    """Where entries would lie: queues need no room here."""
    return constant(number(op, "base"), INT32)


@record
class Slots:
    """The entries of a pipe in global memory."""

    view: View
    nbytes: int
    count: int


@declare("pto.aic_initialize_pipe aiv_initialize_pipe", free("x*"), rule=_in_range)
def _initialize(m: Machine, op: Op) -> None:
    """A pipe that leads to the vector cores (`dir_mask` 1), to the cube (2) or both ways (3)."""
    mask = number(op, "dir_mask")
    views = [found for found in (m.values[value] for value in op.operands) if isinstance(found, View)]
    if views and mask == 3:
        message = f"`{op.name}` has slots in global memory for both ways, which cannot be run here"
        raise UnsupportedFeatureError(message, help="use two pipes, each with slots of its own")
    for towards, bit in (("aiv", 1), ("aic", 2)):
        if mask & bit:
            slots = [Slots(view, number(op, "slot_size"), 4 if mask == 3 else 8) for view in views]
            m.pipes[towards, number(op, "id")] = slots[0] if slots else None


def _initialized(m: Machine, op: Op, towards: str) -> Slots | None:
    """Return the slots of an op's pipe; refuse an op without a pipe, or outside of cores that meet."""
    if m.core is None:
        raise UnsupportedFeatureError(
            f"`{op.name}` meets no other core: this kernel runs on one",
            help="launch a function that calls both the cube's and the vector cores' function",
        )
    key = towards, number(op, "id")
    if key not in m.pipes:
        ways = {"aiv": 1, "aic": 2}
        message = f"pipe {key[1]} of `{op.name}` is initialized for no such direction here"
        raise PtoOperandError(message, help=f"initialize it before, with `dir_mask = {ways[towards]}` or 3")
    found = m.pipes[key]
    assert found is None or isinstance(found, Slots)
    return found


# tiles


@declare("pto.tpush_to_aiv tpush_to_aic", free("x"), rule=_in_range)
def _push(m: Machine, op: Op, entry: Tile | View) -> None:
    """A tile, or a slot that has been written, for the other side."""
    towards, id = PUSHES[op.name], number(op, "id")
    _initialized(m, op, towards)
    if not isinstance(entry, Tile):
        signal(m, ("slot", id))
        return
    assert m.core is not None
    held = m.core.meeting.entries[towards, id]
    value = cast(m, read_all(m, entry), held.dtype)
    shape = held.whole if m.core.kind == CUBE else held.shape
    if tile_type(value).shape != shape:
        blank = m.b.tile("full", shape, held.dtype, constant(0, held.dtype))
        value = m.b.tile("set_validshape", m.b.tile("assemble", blank, value, (0, 0)), *entry.valid)
    push(m, towards, ("tiles", id), value, _split(held))


def _split(entry: Entry) -> int:
    return 0 if entry.axis is None else entry.axis + 1


@declare("pto.tpop_from_aic tpop_from_aiv", free("i*", "x"), rule=_in_range)
def _pop(m: Machine, op: Op, *extents: Expr) -> Tile | View:
    """The oldest tile that the other side has pushed, or a slot that it has written."""
    towards, id, type_ = POPS[op.name], number(op, "id"), op.results[0].type
    slots = _initialized(m, op, towards)
    if isinstance(type_, TensorView):
        wait(m, ("slot", id))
        return _slot(m, op, towards, slots, type_)
    assert m.core is not None and isinstance(type_, TileBuf)
    _refuse_handed_on(m, op)
    held = m.core.meeting.entries[towards, id]
    shape = held.whole if m.core.kind == CUBE else held.shape
    value = pop(m, towards, ("tiles", id), shape, held.dtype, _split(held))
    told = (*map(m.b.index, extents), None, None)[:2]
    valid = [
        given if given is not None else m.b.index(extent if extent is not None else most)
        for given, extent, most in zip(
            told, (type_.valid_rows, type_.valid_cols), (type_.rows, type_.cols), strict=True
        )
    ]
    target = fresh(m, m.here(op), type_, (valid[0], valid[1]))
    value = m.b.tile("set_validshape", value, *valid)
    if shape != target.limits:
        open_ = None if None not in map(known, valid) else target.valid
        value = m.b.tile("slice", value, static(target.valid, target.limits), (0, 0), open_)
    cover(m, target, value)
    return target


def _refuse_handed_on(m: Machine, op: Op) -> None:
    """Refuse a tile that outlives its turn: the next one is taken to the same place."""
    body = m.calls[-1].body
    ops = body.ops if body is not None else ()
    if any(op.results[0] in inner.operands for each in ops for inner in each.walk() if inner.name == "scf.yield"):
        message = f"what `{op.name}` takes here is handed on to the next turn, when another tile has its place"
        raise UnsupportedFeatureError(message, help="copy it to a tile of its own with `pto.tmov`")


# slots in global memory


@declare("pto.talloc_to_aiv talloc_to_aic", free("", "y"), rule=_in_range)
def _allocate(m: Machine, op: Op) -> View:
    """The next slot of global memory, once nobody reads it any more."""
    towards, id = op.name.rpartition("_")[2], number(op, "id")
    slots, type_ = _initialized(m, op, towards), op.results[0].of(TensorView)
    if slots is not None:
        used = get_cell(m, ("allocated", towards, id))
        with m.b.when(m.b.scalar("ge", used, m.b.index(slots.count))):
            wait(m, ("free", id))
    return _slot(m, op, towards, slots, type_)


@declare("pto.tfree_from_aic tfree_from_aiv", free("x?"), rule=_in_range)
def _free(m: Machine, op: Op, *entry: Tile | View) -> None:
    """A slot that may be used again; of tiles there are as many as there have to be."""
    towards = "aiv" if op.name.endswith("aic") else "aic"
    if _initialized(m, op, towards) is not None:
        signal(m, ("free", number(op, "id")))


def _slot(m: Machine, op: Op, towards: str, slots: Slots | None, type_: TensorView) -> View:
    """Return the slot whose turn it is, or this vector core's part of it."""
    id, split = number(op, "id"), number(op, "split")
    if slots is None:
        message = f"pipe {id} of `{op.name}` has no slots in global memory"
        raise PtoOperandError(message, help="initialize it with `gm_slot_tensor`")
    key = ("allocated", towards, id)
    turn = get_cell(m, key)
    set_cell(m, key, m.b.add(turn, 1))
    size = slots.view.pointer.element.nbytes
    step = m.b.mul(m.b.scalar("mod", turn, m.b.index(slots.count)), slots.nbytes // size)
    rows, cols = ((1, *(extent or 1 for extent in type_.shape)))[-2:]
    part = m.b.mul(m.memory.number, (0, rows * cols, cols)[split])
    extents = zip(type_.shape, slots.view.shape, strict=True)
    shape = tuple(m.b.index(extent) if extent is not None else given for extent, given in extents)
    pointer = moved(m, slots.view.pointer, m.b.add(step, part))
    return replace(slots.view, pointer=pointer, shape=shape)


unmeant("pto.initialize_l2g2l_pipe initialize_l2l_pipe", free("xx*", "o"), _FAMILY, _in_range)
unmeant("pto.declare_tile", free("", "z"), _FAMILY)
unmeant("pto.declare_global", free("", "y"), _FAMILY)
unmeant("pto.talloc tpush tpop tfree", free("xx?"), _FAMILY, _in_range)
