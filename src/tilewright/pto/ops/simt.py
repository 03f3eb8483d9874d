"""SIMT: functions launched over work items, which of them runs, and what they keep from launch to launch."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from tilewright.arrays import np
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import UINT32
from tilewright.pto.entries import launched
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError
from tilewright.pto.example import Example
from tilewright.pto.examples.items import items
from tilewright.pto.machine.crews import crew_of
from tilewright.pto.machine.machine import Machine, Threads
from tilewright.pto.machine.phases import launch
from tilewright.pto.machine.threads import MOST_THREADS, WARP, alone
from tilewright.pto.machine.tiles import bytes_view, get_cell, set_cell
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare, number_of
from tilewright.pto.text.form import Typing, free
from tilewright.pto.types import I64, SCALARS, Scalar

_ID = free("", "i", typing=Typing.RESULT)
_SLOTS = 123
"""How many 32-bit values a work item keeps."""


def _few_enough(op: Op, constants: Constants) -> None:
    """Refuse a launch of more work items than there can be, as far as its text says how many."""
    extents = [constants.get(value, 1) for value in op.operands[:3]]
    count = extents[0] * extents[1] * extents[2]
    if min(extents) < 0 or count > MOST_THREADS:
        message = f"`{op.name}` has {' x '.join(map(str, extents))} work items"
        raise PtoOperandError(message, help=f"at most {MOST_THREADS} of them run together; launch several times")


def _meant(op: str, out: Any) -> Any:
    """Return what NumPy says each of 8 x 2 x 2 work items stores."""
    item, name = np.arange(32), op.removeprefix("pto.")
    masks = {"eq": 1 << item, "lt": (1 << item) - 1, "le": (2 << item) - 1}
    masks |= {"ge": (1 << 32) - 1 - masks["lt"], "gt": (1 << 32) - 1 - masks["le"]}
    if name.startswith("get_lanemask_"):
        return masks[name[-2:]].astype(np.uint32).astype(np.int32)
    known = {
        "get_tid_x": item % 8, "get_tid_y": item // 8 % 2, "get_tid_z": item // 16, "get_block_dim_x": 8 + 0 * item,
        "get_block_dim_y": 2 + 0 * item, "get_block_dim_z": 2 + 0 * item, "get_laneid": item, "resume": item + 5,
        "store_vfsimt_info": item, **dict.fromkeys(("get_clock32", "get_clock64"), 1 + 0 * item),
    }  # fmt: skip
    return known.get(name, 0 * item)


_GET = items("%r = {op} : i32", _meant)
_LAUNCH = "pto.simt_launch @{}<<<%i8, %i2, %i2>>>"
_GIVEN = "(%out) : (!pto.ptr<i32, gm>) -> ()"
_HEAD = "func.func @{}(%out: !pto.ptr<i32, gm>) attributes {{pto.simt_entry}} {{\n"
_KEPT = Example(
    "out: i32 32",
    f"{_LAUNCH.format('first')}() : () -> ()\n{_LAUNCH.format('second')}{_GIVEN}",
    _meant,
    around="func.func @first() attributes {pto.simt_entry} {\n%lane = pto.get_laneid : i32\n"
    "%more = arith.addi %lane, %i5 : i32\n"
    "pto.threadfence\npto.threadfence_block\npto.keep %more {slot = 4 : i64} : i32\npto.syncthreads\nreturn\n}\n"
    f"{_HEAD.format('second')}%was = pto.resume {{slot = 4 : i64}} : i32\n%lane = pto.get_laneid : i32\n"
    "pto.stg %was, %out[%lane] : !pto.ptr<i32, gm>, i32\nreturn\n}",
)
_CALLED = Example(
    "out: i32 32",
    "pto.store_vfsimt_info %i1, %i1, %i32 : i32, i32, i32\nfunc.call @first(%out) : (!pto.ptr<i32, gm>) -> ()",
    _meant,
    around=f"{_HEAD.format('first')}%lane = pto.get_laneid : i32\n"
    "pto.stg %lane, %out[%lane] : !pto.ptr<i32, gm>, i32\nreturn\n}",
)


@declare("pto.simt_launch", free("iiix*"), rule=_few_enough, is_by_bytes=True, counts=SCALARS["i32"])
def _launch(m: Machine, op: Op, x: Expr, y: Expr, z: Expr) -> None:
    """A function, run by so many work items along x, y and z."""
    extents = m.b.index(x), m.b.index(y), m.b.index(z)
    launch(m, op, launched(op), extents, [m.values[value] for value in op.operands[3:]])


@declare("pto.store_vfsimt_info", free("iii"), rule=_few_enough, example=_CALLED)
def _extents(m: Machine, op: Op, z: Expr, y: Expr, x: Expr) -> None:
    """How many work items the calls of entries that follow have, along z, y and x."""
    m.simt.extents = m.b.index(x), m.b.index(y), m.b.index(z)


# which work item runs


def _running(m: Machine) -> Threads:
    return m.simt.threads or alone(m)


@declare(
    f"pto.{' '.join(f'get_{what}_{axis}' for what, axis in product(('tid', 'block_dim'), 'xyz'))}", _ID, example=_GET
)
def _place(m: Machine, op: Op) -> Expr:
    """Where this work item is along an axis, or how many there are."""
    threads = _running(m)
    found = threads.place if op.name.startswith("pto.get_tid") else threads.extents
    return m.b.cast(found["xyz".index(op.name[-1])], op.results[0].of(Scalar).dtype)


@declare(
    f"pto.{' '.join(f'get_{what}_{axis}' for what, axis in product(('grid_dim', 'block_idx'), 'xyz'))}",
    _ID,
    example=_GET,
)
@declare("pto.get_veccoreid", _ID, example=_GET)
def _zero(m: Machine, op: Op) -> Expr:
    """Zero, as the machine has it: `get_block_idx` without an axis counts blocks."""
    return constant(0, op.results[0].of(Scalar).dtype)


def _lane(m: Machine) -> Expr:
    """Return which lane of its warp a work item is."""
    return m.b.scalar("mod", _running(m).number, m.b.index(WARP))


@declare("pto.get_laneid", _ID, example=_GET)
def _lane_id(m: Machine, op: Op) -> Expr:
    """Which lane of its warp this work item is."""
    return m.b.cast(_lane(m), op.results[0].of(Scalar).dtype)


@declare("pto.get_lanemask_eq get_lanemask_le get_lanemask_lt get_lanemask_ge get_lanemask_gt", _ID, example=_GET)
def _lane_mask(m: Machine, op: Op) -> Expr:
    """A bit for each lane that compares so with this one."""
    one = m.b.scalar("shl", constant(1, UINT32), m.b.cast(_lane(m), UINT32))
    below = m.b.scalar("sub", one, constant(1, UINT32))
    word = op.name[-2:]
    mask = one if word == "eq" else below if word in ("lt", "ge") else m.b.scalar("bit_or", below, one)
    mask = m.b.scalar("invert", mask) if word in ("ge", "gt") else mask
    return m.b.cast(mask, op.results[0].of(Scalar).dtype)


_CLOCKS = {
    f"get_clock{bits}": items(
        f"%a = {{op}} : i{bits}\n%b = {{op}} : i{bits}\n%is = arith.cmpi sgt, %b, %a : i{bits}\n"
        "%r = arith.extui %is : i1 to i32",
        _meant,
    )
    for bits in (32, 64)
}


@declare("pto.get_clock32 get_clock64", _ID, example=_CLOCKS)
def _clock(m: Machine, op: Op) -> Expr:
    """A number that is larger each time: how often a block has asked."""
    now = m.b.add(get_cell(m, "clock"), 1)
    set_cell(m, "clock", now)
    return m.b.cast(now, op.results[0].of(Scalar).dtype)


# order


@declare("pto.syncthreads", free(""), meets=MOST_THREADS)
def _synchronize(m: Machine, op: Op) -> None:
    """Wait until all work items of the launch are here; an error where some of them never come."""
    said = f"some work items of the launch reach `{op.name}` and others do not, in a branch or loop of their own"
    crew_of(m, op).check_together(f"{said}: move it to where all of them come")


@declare("pto.threadfence threadfence_block", free(""))
def _fence(m: Machine, op: Op) -> None:
    """Let others see what was written: they do already."""


# what is kept between launches


def _slot(op: Op, _: Constants) -> None:
    slot, value = number_of(op, "slot"), (op.operands or op.results)[0]
    if slot is None or not 0 <= slot < _SLOTS:
        raise PtoAttributeError(f"`{op.name}` needs a slot", help=f"as in `{{slot = 0 : i64}}`, up to {_SLOTS - 1}")
    if str(value.type) == "f64":
        raise PtoTypeMismatchError(f"`{op.name}` keeps no f64", help="keep integers, f16, bf16 or f32")
    is_wide = isinstance(value.type, Scalar) and value.type.bits == 64
    if is_wide and (slot % 2 or slot + 1 == _SLOTS):
        raise PtoAttributeError(f"a {value.type} takes two slots from an even one on, not slot {slot}")


def _kept(m: Machine, op: Op, type_: Scalar) -> tuple[Expr, Expr]:
    """Return where all work items keep what is in a slot, and which place is this one's."""
    place = m.memory.cell(("kept", number_of(op, "slot")), I64, MOST_THREADS)
    view = bytes_view(m, replace(place, element=type_), (MOST_THREADS,), (I64.nbytes // type_.nbytes,))
    return view, _running(m).number


@declare("pto.keep", free("x"), rule=_slot, knows_packed=True)
def _keep(m: Machine, op: Op, value: Expr) -> None:
    """Keep a number of this work item for the next launch."""
    view, number = _kept(m, op, op.operands[0].of(Scalar))
    m.b.set(view, value, number)


@declare("pto.resume", free("", "x", typing=Typing.RESULT), rule=_slot, knows_packed=True, example=_KEPT)
def _resume(m: Machine, op: Op) -> Expr:
    """What this work item kept in the launch before; zero where it kept nothing."""
    view, number = _kept(m, op, op.results[0].of(Scalar))
    return m.b.get(view, number)
