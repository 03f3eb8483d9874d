"""Copies between memories: bursts of bytes, repeated at strides.

Copies to and from global memory count bytes and their strides lead from one start to the next; copies between local
memories count blocks of 32 bytes and the gaps between bursts. The clauses `nburst`, `loop` (innermost first) and `pad`
hold them. The two outer loops of looped copies are settings of the machine that ops before them make.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import Any

from tilewright.core.expr import Expr
from tilewright.dtypes import INT64
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.example import Example
from tilewright.pto.machine.copying import Axis, Copy, in_blocks, run
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.pairs import reinterpreted
from tilewright.pto.machine.registers import BLOCK
from tilewright.pto.machine.settings import ATOMIC_AT, bits, note, setters, setting
from tilewright.pto.machine.tiles import bytes_view, moved
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare, element_type, within
from tilewright.pto.text.form import Form, Layout, Word, free
from tilewright.pto.types import I64, SCALARS, Scalar, Space

# grouped copies


_WIDENED = ("f32", "f32"), ("i32", "i32"), ("f16", "f32"), ("bf16", "f32")
_L1_TO_BT = within(Space.MAT, Space.BIAS)


def widened_to_bias(op: Op, constants: Constants) -> None:
    """Refuse a bias in other memories, or of elements that no bias is made of."""
    _L1_TO_BT(op, constants)
    come, go = (element_type(value.type) for value in op.operands[:2])
    if (come.name.removeprefix("s"), go.name.removeprefix("s")) not in _WIDENED:
        pairs = ", ".join(f"{a} to {b}" for a, b in _WIDENED)
        raise PtoTypeMismatchError(f"`{op.name}` moves {come} to {go}", help=f"it moves {pairs}")


_BURSTS = {"nburst": Word(Layout.PLAIN, "iii", required=True), "loop": Word(Layout.PLAIN, "iii", repeated=True)}
_CUBES = {**_BURSTS, "nburst": Word(Layout.PLAIN, "iii", required=True, default=(1, 0, 0))}
"""The same where the cube's memories are, of which bodies need not say that one burst is all."""


def _axes(m: Machine, op: Op) -> tuple[Axis, ...]:
    """Return the repetitions of a copy, the outermost first; the text has the innermost first."""
    found = [c.values for c in op.clauses if c.name == "nburst"] + [c.values for c in op.clauses if c.name == "loop"]
    return tuple(Axis(*(m.index(v) for v in values)) for values in reversed(found))


_PADDED = {**_BURSTS, "pad": Word(Layout.PLAIN, "si?i?")}


def _same(op: str, x: Any, out: Any) -> Any:
    return x


_THERE_AND_BACK = Example(
    "x: f32 8x64, out: f32 8x64",
    """
    pto.mte_gm_ub %x, %u, %n0, %n256 nburst(%n4, %n256, %n512) loop(%n2, %n1024, %n2048)
    pto.mte_ub_gm %u, %out, %n256 nburst(%n8, %n512, %n256)
    """,
    _same,
    "u: f32 ub 0",
)
_AROUND = Example(
    "x: i16 512, out: i16 512",
    """
    pto.mte_gm_l1 %x, %l, %n512 nburst(%n2, %n512, %n512)
    pto.mte_l1_ub %l, %u, %n16 nburst(%n2, %n0, %n1)
    pto.mte_ub_ub %u, %v, %n16 nburst(%n2, %n1, %n0)
    pto.mte_ub_l1 %v, %m, %n32 nburst(%n1, %n0, %n0)
    pto.mte_l1_ub %m, %w, %n32 nburst(%n1, %n0, %n0)
    pto.mte_ub_gm %w, %out, %n1024 nburst(%n1, %n0, %n0)
    """,
    _same,
    "l: i16 l1 0, m: i16 l1 4096, u: i16 ub 0, v: i16 ub 2048, w: i16 ub 4096",
)
_LOOPED = Example(
    "x: i16 512, out: i16 512",
    f"""
    pto.set_pad_val_outtol1 %n0
    pto.set_loop_size_outtol1 %n{2 | 1 << 21}
    pto.set_loop1_stride_outtol1 %n{512 | 512 << 40}
    pto.set_loop2_stride_outtol1 %n0
    pto.copy_gm_to_cbuf %x, %l, %n1, %n512, %n0, %n0
    pto.copy_cbuf_to_ubuf %l, %u, %n0, %n1, %n32, %n0, %n0
    pto.copy_ubuf_to_ubuf %u, %v, %n0, %n2, %n16, %n0, %n0
    pto.copy_ubuf_to_cbuf %v, %m, %n0, %n1, %n32, %n0, %n0
    pto.copy_cbuf_to_ubuf %m, %w, %n0, %n1, %n32, %n0, %n0
    pto.set_loop_size_ubtoout %n2, %n1
    pto.set_loop1_stride_ubtoout %n512, %n512
    pto.set_loop2_stride_ubtoout %n0, %n0
    pto.copy_ubuf_to_gm %w, %out, %n0, %n1, %n512, %n0, %n512, %n512
    """,
    _same,
    "l: i16 l1 0, m: i16 l1 4096, u: i16 ub 0, v: i16 ub 2048, w: i16 ub 4096",
)
_LOOPED_IN = Example(
    "x: i16 512, out: i16 512",
    """
    pto.set_mov_pad_val %n0
    pto.set_loop_size_outtoub %n2, %n1
    pto.set_loop1_stride_outtoub %n512, %n512
    pto.set_loop2_stride_outtoub %n0, %n0
    pto.copy_gm_to_ubuf %x, %u, %n0, %n1, %n512, %n0, %n0, %no, %n0, %n512, %n512
    pto.mte_ub_gm %u, %out, %n1024 nburst(%n1, %n0, %n0)
    """,
    _same,
    "u: i16 ub 0",
)


@declare("pto.mte_gm_ub", Form("glii", words=_PADDED), is_by_bytes=True, counts=I64, example=_THERE_AND_BACK)
def _load(m: Machine, op: Op, source: Pointer, target: Pointer, _: Expr, length: Expr) -> None:
    """Bursts of bytes from global to local memory."""
    copy = Copy(source, target, m.b.index(length), _axes(m, op))
    given = op.clause("pad")
    if given is None:
        run(m, copy)
        return
    left, right, *__ = (*(m.index(v) for v in given[1:]), m.b.index(0), m.b.index(0))
    value = m.b.cast(m.expr(given[0]), target.element.dtype, "rint")
    _run_padded(m, copy, value, left, right)


def _run_padded(m: Machine, copy: Copy, value: Expr, left: Expr, right: Expr) -> None:
    """Fill the rows of the target up to their stride, then copy behind their left padding; both count elements."""
    size = copy.target.element.nbytes
    shift = m.b.mul(left, size)
    needed = m.b.add(m.b.add(shift, copy.length), m.b.mul(right, size))
    row = m.b.scalar("max", needed, copy.axes[-1].target)
    if not _fill_known(m, copy, value, known(row)):
        _fill(m, copy, value, row)
    run(m, replace(copy, target=replace(copy.target, offset=m.b.add(copy.target.offset, shift))))


def _fill_known(m: Machine, copy: Copy, value: Expr, row: int | None) -> bool:
    """Emit the filling of rows of known extents, all at once; return whether that could be done."""
    size = copy.target.element.nbytes
    numbers = [row, *(axis.numbers[2] for axis in copy.axes)]
    counts = [known(axis.count) for axis in copy.axes]
    if None in counts or any(n is None or n % size for n in numbers):
        return False
    length, *steps = (int(n or 0) // size for n in numbers)
    shape = (*(n or 0 for n in counts), length)
    if min(shape) > 0:
        view = bytes_view(m, copy.target, shape, (*steps, 1))
        m.b.store(view, m.b.tile("full", shape, copy.target.element.dtype, value))
    return True


def _fill(m: Machine, copy: Copy, value: Expr, row: Expr) -> None:
    """Emit the filling of rows whose extents only the running program knows, element by element."""
    size = m.b.index(copy.target.element.nbytes)
    counts = (*(axis.count for axis in copy.axes), m.b.scalar("floordiv", row, size))
    strides = (*(m.b.scalar("floordiv", axis.target, size) for axis in copy.axes), m.b.index(1))
    view = bytes_view(m, copy.target, counts, strides)

    with ExitStack() as loops:
        indices = [loops.enter_context(m.b.loop(0, count)) for count in counts]
        m.b.set(view, value, *indices)


@declare("pto.mte_ub_gm", Form("lgi", words=_BURSTS), is_by_bytes=True, counts=I64)
def _store(m: Machine, op: Op, source: Pointer, target: Pointer, length: Expr) -> None:
    """Bursts of bytes from local to global memory."""
    _refuse_combining(m, op)
    run(m, Copy(source, target, m.b.index(length), _axes(m, op)))


def _refuse_combining(m: Machine, op: Op) -> None:
    """Refuse bytes where the control word says that what is written to global memory is added to it.

    A word that only the running program knows stops it there.
    """
    (control,) = setting(m, "set_ctrl")
    kind = bits(m, control, ATOMIC_AT, 3)
    if known(kind):
        message = f"the control word lets `{op.name}` add to global memory, which cannot be run here"
        raise UnsupportedFeatureError(message, help="store a tile with `atomicType`, or clear bits 6 to 8 before")
    if known(kind) is None:
        message = "the control word lets a copy add to global memory, which cannot be run here"
        m.b.act("system.device_assert", condition=m.b.scalar("eq", kind, m.b.index(0)), message=message)


@declare("pto.mte_gm_l1", Form("gpi", words=_CUBES), rule=within(Space.GM, Space.MAT), is_by_bytes=True, counts=I64)
def _stage(m: Machine, op: Op, source: Pointer, target: Pointer, length: Expr) -> None:
    """Bursts of bytes from global memory to the cube's."""
    run(m, Copy(source, target, m.b.index(length), _axes(m, op)))


@declare("pto.mte_ub_ub", Form("lli", words=_BURSTS), is_by_bytes=True, counts=I64, example=_AROUND)
@declare("pto.mte_ub_l1", Form("lpi", words=_CUBES), is_by_bytes=True, counts=I64)
@declare("pto.mte_l1_ub", Form("pli", words=_CUBES), rule=within(Space.MAT, Space.VEC), is_by_bytes=True, counts=I64)
def _between(m: Machine, op: Op, source: Pointer, target: Pointer, blocks: Expr) -> None:
    """Blocks of 32 bytes with gaps between the bursts."""
    run(m, in_blocks(m, source, target, m.b.index(blocks), _axes(m, op), BLOCK))


_ONCE = {"nburst": _CUBES["nburst"]}


@declare("pto.mte_l1_fb", Form("ppi", words=_ONCE), rule=within(Space.MAT, Space.SCALING), is_by_bytes=True, counts=I64)
def _stage_factors(m: Machine, op: Op, source: Pointer, target: Pointer, blocks: Expr) -> None:
    """Blocks of 64 bytes with gaps between the bursts, to where factors lie."""
    run(m, in_blocks(m, source, target, m.b.index(blocks), _axes(m, op), 2 * BLOCK))


@declare("pto.mte_l1_bt mte_l1_bias", Form("ppi", words=_ONCE), rule=widened_to_bias, is_by_bytes=True, counts=I64)
def _stage_bias(m: Machine, op: Op, source: Pointer, target: Pointer, blocks: Expr) -> None:
    """Blocks of 32 bytes with gaps between the bursts, half floats made full ones, to where a bias lies."""
    stage_bias(m, source, target, m.b.index(blocks), _axes(m, op)[0])


def stage_bias(m: Machine, source: Pointer, target: Pointer, blocks: Expr, bursts: Axis) -> None:
    """Copy blocks of 32 bytes, each element in the type of where it goes."""
    count, per = known(blocks), BLOCK // source.element.nbytes
    if count == 0:
        return
    lanes = per if count is None else count * per  # at a time
    with m.b.loop(0, bursts.count, hint="burst") as i:
        steps = [m.b.mul(m.b.add(gap, blocks), per) for gap in (bursts.source, bursts.target)]
        starts = [moved(m, p, m.b.scalar("mul", i, step)) for p, step in zip((source, target), steps, strict=True)]
        with m.b.loop(0, m.b.mul(blocks, per), lanes, hint="lane") if count is None else nullcontext(0) as first:
            come, go = (moved(m, start, m.b.index(first)) for start in starts)
            row = m.b.load(bytes_view(m, come, (1, lanes), (lanes, 1)), (1, lanes))
            m.b.store(bytes_view(m, go, (1, lanes), (lanes, 1)), cast(m, row, target.element.dtype))


# looped copies


LOOPS = ("loop_size", "loop1_stride", "loop2_stride")

_WAYS = {"pto.copy_gm_to_ubuf": "outtoub", "pto.copy_ubuf_to_gm": "ubtoout", "pto.copy_gm_to_cbuf": "outtol1"}
_LOOPS = setters(f"pto.{' '.join(f'set_{name}_{way}' for way in _WAYS.values() for name in LOOPS)}")


@declare(_LOOPS, Form("ii?"), counts=I64)
def _set(m: Machine, op: Op, first: Expr, *second: Expr) -> None:
    """How often copies are repeated, or how far that leads on either side; both in one number where it is alone."""
    name, is_size = op.name.removeprefix("pto."), "size" in op.name
    width = 21 if is_size else 40
    both = (first, *second) if second else (bits(m, first, 0, width), bits(m, first, width, 64 - width))
    note(m, name, *both)


def _outer(m: Machine, op: Op) -> tuple[Axis, ...]:
    """Return the two outer loops as they are set; a size of zero, which is what nobody set, means once."""
    way, one = _WAYS[op.name], m.b.index(1)
    counts = [m.b.scalar("max", size, one) for size in setting(m, f"set_loop_size_{way}", 2)]
    strides = [setting(m, f"set_loop{loop}_stride_{way}", 2) for loop in (1, 2)]
    return Axis(counts[1], *strides[1]), Axis(counts[0], *strides[0])


@declare(setters("pto.set_mov_pad_val set_pad_val_outtol1"), free("s"), is_by_bytes=True)
def _set_pad(m: Machine, op: Op, value: Expr) -> None:
    """What fills the rows of copies beside what they copy: the bits of a number."""
    type_ = op.operands[0].of(Scalar)
    word = value if type_.is_integer else reinterpreted(m, op, value, type_, SCALARS[f"ui{type_.bits}"])[0]
    note(m, op.name.removeprefix("pto."), m.b.cast(word, INT64))


def _pad(m: Machine, op: Op, element: Scalar) -> Expr:
    """Return what fills rows, as an element of where they go."""
    (word,), held = setting(m, "set_mov_pad_val"), SCALARS[f"ui{element.bits}"]
    return reinterpreted(m, op, m.b.cast(word, held.dtype), held, element)[0]


@declare("pto.copy_gm_to_ubuf", Form("glx*"), is_by_bytes=True, counts=I64, example=_LOOPED_IN)
def _copy_in(m: Machine, op: Op, come: Pointer, go: Pointer) -> None:
    """Operands: bursts and their length, padding left and right, and strides at the end, source first."""
    if len(op.operands) != 11:
        raise UnsupportedFeatureError(f"{op.name} takes 11 operands, got {len(op.operands)}")
    count, length, left, right = (m.index(v) for v in op.operands[3:7])
    source, target = (m.index(v) for v in op.operands[9:])
    copy = Copy(come, go, length, (*_outer(m, op), Axis(count, source, target)))
    if known(left) == 0 and known(right) == 0:
        run(m, copy)
    else:
        _run_padded(m, copy, _pad(m, op, go.element), left, right)


@declare("pto.copy_ubuf_to_gm", Form("lgx*"), is_by_bytes=True, counts=I64, example=_LOOPED)
def _copy_out(m: Machine, op: Op, come: Pointer, go: Pointer) -> None:
    """Operands: bursts and their length, and strides at the end, the target's first."""
    _refuse_combining(m, op)
    if len(op.operands) != 8:
        raise UnsupportedFeatureError(f"{op.name} takes 8 operands, got {len(op.operands)}")
    count, length = (m.index(v) for v in op.operands[3:5])
    target, source = (m.index(v) for v in op.operands[6:])
    run(m, Copy(come, go, length, (*_outer(m, op), Axis(count, source, target))))


@declare("pto.copy_gm_to_cbuf", free("ppiiii"), rule=within(Space.GM, Space.MAT), is_by_bytes=True, counts=I64)
def _stage_looped(m: Machine, op: Op, come: Pointer, go: Pointer, count: Expr, length: Expr, *strides: Expr) -> None:
    """Operands: bursts and their length in bytes, and strides from one start to the next."""
    source, target = map(m.b.index, strides)
    run(m, Copy(come, go, m.b.index(length), (*_outer(m, op), Axis(m.b.index(count), source, target))))


@declare("pto.copy_ubuf_to_cbuf", free("ppiiiii"), rule=within(Space.VEC, Space.MAT), is_by_bytes=True, counts=I64)
@declare("pto.copy_cbuf_to_ubuf", free("ppiiiii"), rule=within(Space.MAT, Space.VEC), is_by_bytes=True, counts=I64)
@declare("pto.copy_ubuf_to_ubuf", free("ppiiiii"), rule=within(Space.VEC, Space.VEC), is_by_bytes=True, counts=I64)
def _copy_blocks(
    m: Machine, op: Op, come: Pointer, go: Pointer, core: Expr, count: Expr, length: Expr, *gaps: Expr
) -> None:
    """Operands: which vector core's memory is written, bursts and their length in blocks of 32 bytes, and gaps."""
    if op.name == "pto.copy_cbuf_to_ubuf":
        go = m.memory.lane(go, m.b.index(core))
    axis = Axis(m.b.index(count), *map(m.b.index, gaps))
    run(m, in_blocks(m, come, go, m.b.index(length), (axis,), BLOCK))


@declare("pto.copy_cbuf_to_fbuf", free("ppiiii"), rule=within(Space.MAT, Space.SCALING), is_by_bytes=True, counts=I64)
def _copy_factors(m: Machine, op: Op, come: Pointer, go: Pointer, count: Expr, length: Expr, *gaps: Expr) -> None:
    """Operands: bursts and their length in blocks of 64 bytes, and gaps."""
    axis = Axis(m.b.index(count), *map(m.b.index, gaps))
    run(m, in_blocks(m, come, go, m.b.index(length), (axis,), 2 * BLOCK))


@declare("pto.copy_cbuf_to_bt", free("ppbiiii"), rule=widened_to_bias, is_by_bytes=True, counts=I64)
def _copy_bias(
    m: Machine, op: Op, come: Pointer, go: Pointer, widens: Expr, count: Expr, length: Expr, *gaps: Expr
) -> None:
    """Operands: whether elements are widened, bursts and their length in blocks of 32 bytes, and gaps."""
    stage_bias(m, come, go, m.b.index(length), Axis(m.b.index(count), *map(m.b.index, gaps)))
