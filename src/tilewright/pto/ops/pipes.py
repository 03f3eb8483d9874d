"""Core-to-core pipes: queues between the cube function and the vector functions of a kernel.

A pipe has eight slots, four for each way where it leads both ways: who pushes waits until one is free, which A2/A3
makes a slot when it is taken, and A5 when `tfree` says so. An entry of tiles is what was valid of the tile that was
pushed; entries in global memory lie in the slots themselves.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT32
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import known, tile_type
from tilewright.pto.elements import A3
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError
from tilewright.pto.examples.pipes import SLOTS, SLOTS_BACK, TILES, VALUES, VALUES_FAR
from tilewright.pto.machine.cores import CUBE, MADE, OTHER, OWN, PIPED, Entry, number, refuse_larger
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.signals import pop, push, signal, wait
from tilewright.pto.machine.tiles import cover, get_cell, moved, read_all, set_cell, static
from tilewright.pto.machine.values import Tile, Token, View
from tilewright.pto.memrefs import is_region
from tilewright.pto.module import Op, Value
from tilewright.pto.op import Constants, declare, number_of
from tilewright.pto.ops.buffers import fresh
from tilewright.pto.text.form import free
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import TensorView, TileBuf, Type
from tilewright.records import record

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


_NEEDED = {"_pipe": ("dir_mask", "slot_size"), "reserve_buffer": ("size",)}
"""The attributes without which there is no pipe or buffer, by how its op's name ends."""


def _in_range(op: Op, _: Constants) -> None:
    """Refuse a number that no pipe has, and a pipe or buffer of which nobody says how large it is."""
    needed = [name for end, names in _NEEDED.items() if op.name.endswith(end) for name in names]
    for name in needed:
        if number_of(op, name) is None:
            least, most = _RANGES[name]
            allowed = f"{least} to {most}" if most < 1 << 31 else f"{least} or more"
            raise PtoAttributeError(f"`{op.name}` needs its `{name}`", help=f"as in {name} = {least}: it is {allowed}")
    both = number_of(op, "dir_mask") == 3
    for name, (least, most) in _RANGES.items():
        value, limit = number_of(op, name), most // 2 if both and name == "local_slot_num" else most
        if value is not None and not least <= value <= limit:
            message = f"`{name}` of `{op.name}` is {value}"
            allowed = f"it is {least} to {limit}" if limit < 1 << 31 else f"it is {least} or more"
            raise PtoAttributeError(message, help=allowed)
    if number_of(op, "slot_num") not in (None, 4, 8):
        raise PtoAttributeError(f"`slot_num` of `{op.name}` is {number_of(op, 'slot_num')}", help="it is 4 or 8")


def _has_its_peer(op: Op, constants: Constants) -> None:
    """Refuse a number that no pipe has, and another core's buffer where the pipe leads one way, or none where both."""
    _in_range(op, constants)
    most = 3 if op.name == MADE[0] else 2
    if (number_of(op, "dir_mask") == 3) != (len(op.operands) == most):
        both, last = number_of(op, "dir_mask") == 3, f"operand {most}"
        message = f"`{op.name}` with `dir_mask` {number(op, 'dir_mask')} has {len(op.operands)} operands"
        help = f"a pipe for both ways has the peer's buffer, {last}" if both else f"leave out the peer's buffer, {last}"
        raise PtoOperandError(message, help=help)


def _refuse_no_entry(op: Op, type_: Type) -> None:
    if not is_region(type_):
        message = f"`{op.name}` takes a tile, or a slot in global memory, got {brief_text(type_)}"
        raise PtoTypeMismatchError(message, help="both sides of a pipe have a tile, or a view of a slot")


def _handed(op: Op, constants: Constants) -> None:
    """Refuse a number that no pipe has, and an entry that is neither a tile nor a slot."""
    _in_range(op, constants)
    _refuse_no_entry(op, op.operands[0].type)


def _popped(op: Op, constants: Constants) -> None:
    """Refuse a number that no pipe has, an entry that is none, and extents of a tile whose type says them."""
    _in_range(op, constants)
    type_ = op.results[0].type
    _refuse_no_entry(op, type_)
    if op.operands and not (isinstance(type_, TileBuf) and type_.valid_rows is None and type_.valid_cols is None):
        message = f"`{op.name}` is told how much is valid, and its tile says it"
        raise PtoOperandError(message, help="write v_row=? and v_col=? in its type, or leave the numbers out")


_RESERVED = free("", "i", phrase="{name, size, location#address_space, auto, base} -> i32")
_IMPORTED = free("", "i", phrase="{name, peer_func@} -> i32")


@declare("pto.reserve_buffer", _RESERVED, rule=_in_range)
@declare("pto.import_reserved_buffer", _IMPORTED, rule=_in_range)
def _reserve(m: Machine, op: Op) -> Expr:
    """Where entries would lie: queues need no room here."""
    return constant(number(op, "base"), INT32)


@record
class Slots:
    """The slots of a pipe: how many there are, and where those of global memory lie."""

    count: int
    view: View | None = None
    nbytes: int = 0


def _slots(m: Machine, op: Op, count: int) -> Slots:
    views = [found for found in (m.values[value] for value in op.operands) if isinstance(found, View)]
    return Slots(count, views[0] if views else None, number(op, "slot_size"))


_INITIALIZED = free(
    "x*",
    phrase="""{id, dir_mask, slot_size, local_slot_num, nosplit} (
        [, gm_slot_buffer = %gm_slot_buffer : #gm_slot_buffer] [, gm_slot_tensor = %gm_slot_tensor : #gm_slot_tensor]
        [, c2v_consumer_buf = %c2v_consumer_buf : #c2v_consumer_buf,
           v2c_consumer_buf = %v2c_consumer_buf : #v2c_consumer_buf])""",
)


@declare("pto.aic_initialize_pipe aiv_initialize_pipe", _INITIALIZED, rule=_in_range)
def _initialize(m: Machine, op: Op) -> None:
    """A pipe that leads to the vector cores (`dir_mask` 1), to the cube (2) or both ways (3)."""
    mask = number(op, "dir_mask")
    slots = _slots(m, op, 4 if mask == 3 else 8)
    if slots.view is not None and mask == 3:
        message = f"`{op.name}` has slots in global memory for both ways, which cannot be run here"
        raise UnsupportedFeatureError(message, help="use two pipes, each with slots of its own")
    for towards, bit in (("aiv", 1), ("aic", 2)):
        if mask & bit:
            m.pipes[towards, number(op, "id")] = slots


def _about(m: Machine, op: Op) -> tuple[str, Hashable]:
    """Return where the pipe leads that an op is about, and which one it is."""
    if op.name in PIPED:
        return PIPED[op.name][1], number(op, "id")
    way = (OWN if op.name in ("pto.tpop", "pto.tfree") else OTHER)[m.core.kind if m.core is not None else CUBE]
    return way, m.pipes.get(op.operands[-1], f"%{op.operands[-1].name}")


def _initialized(m: Machine, op: Op, towards: str, id: Hashable) -> Slots:
    """Return the slots of an op's pipe; refuse an op without a pipe, or outside of cores that meet."""
    if m.core is None:
        raise UnsupportedFeatureError(
            f"`{op.name}` meets no other core: this kernel runs on one",
            help="launch a function that calls both the cube's and the vector cores' function",
        )
    key = towards, id
    if key not in m.pipes:
        ways = {"aiv": 1, "aic": 2}
        message = f"pipe {id} of `{op.name}` is initialized for no such direction here"
        raise PtoOperandError(message, help=f"initialize it before, with `dir_mask = {ways[towards]}` or 3")
    found = m.pipes[key]
    assert isinstance(found, Slots)
    return found


def _await_slot(m: Machine, towards: str, id: Hashable, slots: Slots) -> None:
    """Wait for a free slot, once all have been used."""
    key = ("used", towards, id)
    used = get_cell(m, key)
    with m.b.when(m.b.scalar("ge", used, m.b.index(slots.count))):
        frees = "pop" if m.arch == A3 else "free"
        other = "aic" if towards == "aiv" else "aiv"
        named = f"pipe {id}" if isinstance(id, int) else "this pipe"
        full = f"{named} has {slots.count} slots, and all of them are full"
        wait(m, ("free", id), stuck=f"{full}: `pto.t{frees}_from_{other}` frees one, and nobody will")
    set_cell(m, key, m.b.add(used, 1))


# tiles

_HANDED = free("xo", phrase="(%entry, %pipe : #) {split}")


@declare("pto.tpush_to_aiv tpush_to_aic", free("x", phrase="(%entry : #) {id, split}"), rule=_handed, example=TILES)
@declare("pto.tpush", _HANDED, rule=_handed, example=VALUES)
def _push(m: Machine, op: Op, entry: Tile | View) -> None:
    """A tile, or a slot that has been written, for the other side."""
    towards, id = _about(m, op)
    slots = _initialized(m, op, towards, id)
    if not isinstance(entry, Tile):
        signal(m, ("slot", id))
        return
    assert m.core is not None
    if (towards, id) in m.core.meeting.bounded:
        _await_slot(m, towards, id, slots)
    held = m.core.meeting.entries[towards, id]
    refuse_larger(op, id, held.nbytes, slots.nbytes)
    value = cast(m, read_all(m, entry), held.dtype)
    shape = held.whole if m.core.kind == CUBE else held.shape
    if tile_type(value).shape != shape:
        blank = m.b.tile("full", shape, held.dtype, constant(0, held.dtype))
        value = m.b.tile("set_validshape", m.b.tile("assemble", blank, value, (0, 0)), *entry.valid)
    push(m, towards, ("tiles", id), value, _split(held))


def _split(entry: Entry) -> int:
    return 0 if entry.axis is None else entry.axis + 1


@declare(
    "pto.tpop_from_aic tpop_from_aiv",
    free("i*", "x", phrase="[(%valid_shape*)] {id, split} -> ^result_type"),
    rule=_popped,
)
def _pop(m: Machine, op: Op, *extents: Expr) -> Tile | View:
    """The oldest tile that the other side has pushed, or a slot that it has written."""
    type_ = op.results[0].type
    if isinstance(type_, TensorView):
        return _written(m, op, type_)
    assert isinstance(type_, TileBuf)
    _refuse_handed_on(m, op)
    told = (*map(m.b.index, extents), None, None)[:2]
    valid = [
        given if given is not None else m.b.index(extent if extent is not None else most)
        for given, extent, most in zip(
            told, (type_.valid_rows, type_.valid_cols), (type_.rows, type_.cols), strict=True
        )
    ]
    target = fresh(m, m.here(op), type_, (valid[0], valid[1]))
    _take(m, op, target)
    return target


def _take(m: Machine, op: Op, target: Tile) -> None:
    """Let a tile hold what the other side has pushed."""
    towards, id = _about(m, op)
    slots = _initialized(m, op, towards, id)
    assert m.core is not None
    held = m.core.meeting.entries[towards, id]
    refuse_larger(op, id, held.nbytes, slots.nbytes)
    shape = held.whole if m.core.kind == CUBE else held.shape
    value = pop(m, towards, ("tiles", id), shape, held.dtype, _split(held))
    value = m.b.tile("set_validshape", value, *target.valid)
    if shape != target.limits:
        open_ = None if None not in map(known, target.valid) else target.valid
        value = m.b.tile("slice", value, static(target.valid, target.limits), (0, 0), open_)
    cover(m, target, value)
    if m.arch == A3 and (towards, id) in m.core.meeting.bounded:
        signal(m, ("free", id))


def _written(m: Machine, op: Op, type_: TensorView) -> View:
    """Return a slot that the other side has written."""
    towards, id = _about(m, op)
    slots = _initialized(m, op, towards, id)
    wait(m, ("slot", id))
    return _slot(m, op, towards, id, slots, type_)


def _refuse_handed_on(m: Machine, op: Op) -> None:
    """Refuse a tile that outlives its turn: the next one is taken to the same place."""
    body = m.calls[-1].body
    ops = body.ops if body is not None else ()
    if any(op.results[0] in inner.operands for each in ops for inner in each.walk() if inner.name == "scf.yield"):
        message = f"what `{op.name}` takes here is handed on to the next turn, when another tile has its place"
        raise UnsupportedFeatureError(message, help="copy it to a tile of its own with `pto.tmov`")


# slots in global memory


@declare(
    "pto.talloc_to_aiv talloc_to_aic",
    free("", "y", phrase="{id, split} -> ^result_type"),
    rule=_in_range,
    example={"talloc_to_aiv": SLOTS, "talloc_to_aic": SLOTS_BACK},
)
def _allocate(m: Machine, op: Op) -> View:
    """The next slot of global memory, once nobody reads it any more."""
    return _free_one(m, op, op.results[0].of(TensorView))


def _free_one(m: Machine, op: Op, type_: TensorView) -> View:
    towards, id = _about(m, op)
    slots = _initialized(m, op, towards, id)
    _await_slot(m, towards, id, slots)
    return _slot(m, op, towards, id, slots, type_)


@declare("pto.tfree_from_aic tfree_from_aiv", free("x?x?", phrase="[(%entry : #entry)] {id, split}"), rule=_in_range)
@declare("pto.tfree", free("x?x?", phrase="([%entry, ]%pipe : #) {split}"), rule=_in_range)
def _free(m: Machine, op: Op, *entry: Tile | View) -> None:
    """A slot that may be used again; on A2/A3 those of tiles may be as soon as these are taken."""
    towards, id = _about(m, op)
    is_in_memory = _initialized(m, op, towards, id).view is not None
    assert m.core is not None
    if is_in_memory or (m.arch != A3 and (towards, id) in m.core.meeting.bounded):
        signal(m, ("free", id))


def _slot(m: Machine, op: Op, towards: str, id: Hashable, slots: Slots, type_: TensorView) -> View:
    """Return the slot whose turn it is, or this vector core's part of it."""
    split = number(op, "split")
    if slots.view is None:
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


# pipes that are values, as passes leave them

_MADE = free(
    "xx?x?",
    "o",
    phrase="{dir_mask, slot_size, slot_num, local_slot_num, flag_base, nosplit}"
    "(%gm : #gm[, %local : #local][, %peer : #peer]) -> !pto.pipe",
)


@declare(f"pto.{' '.join(name.removeprefix('pto.') for name in MADE)}", _MADE, rule=_has_its_peer)
def _make(m: Machine, op: Op) -> Token:
    """A pipe: the first one of the cube leads to the first one of the vector cores, and so on."""
    id = "made", sum(isinstance(key, Value) for key in m.pipes)
    m.pipes[op.results[0]] = id
    slots = _slots(m, op, number(op, "slot_num") or 4)
    for towards, bit in (("aiv", 1), ("aic", 2)):
        if number(op, "dir_mask") & bit:
            m.pipes[towards, id] = slots
    return Token()


@declare("pto.declare_tile", free("", "z", phrase="-> ^result_type"))
def _declare_tile(m: Machine, op: Op) -> Tile:
    """A tile that will hold what is taken."""
    type_ = op.results[0].of(TileBuf)
    rows, cols = type_.valid_rows, type_.valid_cols
    valid = m.b.index(type_.rows if rows is None else rows), m.b.index(type_.cols if cols is None else cols)
    return fresh(m, m.here(op), type_, valid)


@declare("pto.declare_global", free("", "y", phrase="-> ^result_type"))
def _declare_slot(m: Machine, op: Op) -> Token:
    """A slot that will be the next one, or the one that is taken."""
    return Token()


@declare("pto.tpop", _HANDED, rule=_handed)
def _take_into(m: Machine, op: Op, entry: Tile | View | Token) -> None:
    """Let a declared tile or slot be the oldest that the other side has pushed."""
    if isinstance(entry, Tile):
        _take(m, op, entry)
    else:
        m.values[op.operands[0]] = _written(m, op, op.operands[0].of(TensorView))


@declare("pto.talloc", free("yo", phrase=_HANDED.phrase), rule=_in_range, example=VALUES_FAR)
def _allocate_into(m: Machine, op: Op) -> None:
    """Let a declared slot be the next one that is free."""
    m.values[op.operands[0]] = _free_one(m, op, op.operands[0].of(TensorView))
