"""Copies between memories: bursts of bytes, repeated at strides.

Copies to and from global memory count bytes and their strides lead from one start to the next; copies between local
memories count blocks of 32 bytes and the gaps between bursts. The clauses `nburst`, `loop` (innermost first) and `pad`
hold them. The two outer loops of looped copies are settings of the machine that ops before them make.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from tilewright.core.expr import Expr, Var
from tilewright.dtypes import INT32
from tilewright.errors import OutOfBoundsError, UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.memory import UNLIMITED
from tilewright.pto.machine.registers import BLOCK
from tilewright.pto.machine.tiles import bytes_view, check_range, get_cell, set_cell
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import Form, Layout, Word
from tilewright.pto.types import I64, SCALARS, Scalar
from tilewright.records import record

BYTE = SCALARS["ui8"]


@record
class Axis:
    """A repetition: how often, and how many bytes lie between one start and the next on either side."""

    count: Expr
    source: Expr
    target: Expr

    @property
    def numbers(self) -> tuple[int | None, int | None, int | None]:
        """The three, where they are known."""
        return known(self.count), known(self.source), known(self.target)


@record
class Copy:
    """Bytes from one place to another: a run of `length`, repeated along axes, the outermost first."""

    source: Pointer
    target: Pointer
    length: Expr
    axes: tuple[Axis, ...]

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """The length, and those of its axes, where they are known."""
        return known(self.length), *(n for axis in self.axes for n in axis.numbers)


CHUNK = 256
"""Bytes at a time of a copy inside one memory whose length only the running program knows."""


def run(m: Machine, copy: Copy) -> None:
    """Emit a copy: at once where that is one of its rows after the other, else in loops."""
    if any(n is not None and n < 0 for n in copy.numbers):
        raise OutOfBoundsError(f"a copy has no negative lengths and strides, got {min(n for n in copy.numbers if n)}")
    if known(copy.length) == 0 or any(known(axis.count) == 0 for axis in copy.axes):
        return
    if known(copy.length) is not None or not copy.axes:
        _emit(m, copy)
        return
    with m.b.when(m.b.scalar("ne", copy.length, m.b.index(0))):  # nothing is nothing, however often
        _emit(m, copy)


def _emit(m: Machine, copy: Copy) -> None:
    if None not in copy.numbers and not _overlaps(copy):
        _run_known(m, _merged(m, copy))
    elif copy.axes:
        _run_along(m, copy)
    else:
        _run_row(m, copy)


def _overlaps(copy: Copy) -> bool:
    """Return whether rows of the target may meet, so that the last one written counts."""
    reach = known(copy.length) or 0
    for axis in reversed(copy.axes):
        count, _, stride = (n or 0 for n in axis.numbers)
        if count > 1 and stride < reach:
            return True
        reach += (count - 1) * stride
    return False


def _run_along(m: Machine, copy: Copy) -> None:
    """Emit a loop along the outermost axis."""
    axis, *inner = copy.axes
    with m.b.loop(0, _turns(m, copy, axis), hint="burst") as i:
        source, target = (
            replace(pointer, offset=m.b.add(pointer.offset, m.b.scalar("mul", i, stride)))
            for pointer, stride in ((copy.source, axis.source), (copy.target, axis.target))
        )
        _emit(m, Copy(source, target, copy.length, tuple(inner)))


def _turns(m: Machine, copy: Copy, axis: Axis) -> Expr:
    """Return how often a copy is repeated: no more than memory has bytes, and once where every time is the same."""
    for pointer, stride in ((copy.source, known(axis.source)), (copy.target, known(axis.target))):
        if pointer.arena is not None and stride:
            most = pointer.arena.limit // stride + 1
            check_range(m, axis.count, most, f"`{pointer.space.loc}` has no room for more than {most} bursts")
    if known(axis.source) or known(axis.target):
        return axis.count
    zero = m.b.index(0)
    moves = m.b.scalar("or_", m.b.scalar("ne", axis.source, zero), m.b.scalar("ne", axis.target, zero))
    flag = m.b.index(m.b.cast(moves, INT32))
    if isinstance(flag, Var):
        flag.bounds = (0, 1)
    return m.b.least(axis.count, m.b.add(m.b.mul(flag, UNLIMITED), 1))


def _run_row(m: Machine, copy: Copy) -> None:
    """Emit a copy of as many bytes as the running program says."""
    if copy.source.buffer is not copy.target.buffer:
        source, target = _views(m, copy, BYTE)
        m.b.act("tensor.assemble", target=target, source=source, offset=(0,))
        return
    with m.b.loop(0, copy.length, CHUNK, hint="chunk") as start:
        count = m.b.least(m.b.index(CHUNK), m.b.scalar("sub", copy.length, start))
        views = [
            bytes_view(m, replace(p, element=BYTE, offset=m.b.add(p.offset, start)), (count,), (1,))
            for p in (copy.source, copy.target)
        ]
        part = m.b.load(views[0], (CHUNK,), (count,))
        m.b.store(views[1], part)


def _merged(m: Machine, copy: Copy) -> Copy:
    """Return the same copy with rows that follow each other without a gap as one; at least one axis stays."""
    axes = [axis for axis in copy.axes if known(axis.count) != 1]
    length = known(copy.length) or 0
    while axes and axes[-1].numbers[1:] == (length, length):
        length *= axes.pop().numbers[0] or 0
    once = Axis(m.b.index(1), m.b.index(0), m.b.index(0))
    return replace(copy, length=m.b.index(length), axes=tuple(axes) or (once,))


def _run_known(m: Machine, copy: Copy) -> None:
    """Emit a copy of known extents: a tile in and out."""
    element = _widest(copy)
    source, target = _views(m, copy, element)
    counts = (known(axis.count) or 0 for axis in copy.axes)
    shape = (*counts, (known(copy.length) or 0) // element.nbytes)
    loaded = m.b.load(source, shape)
    m.b.store(target, loaded)


def _widest(copy: Copy) -> Scalar:
    """Return the largest unit that everything is a whole number of."""
    numbers = [known(copy.length), *(n for axis in copy.axes for n in axis.numbers[1:])]
    for pointer in (copy.source, copy.target):
        offset = known(pointer.offset)
        numbers.append(pointer.element.nbytes if offset is None else offset)
    for size in (4, 2):
        if all(n is not None and n % size == 0 for n in numbers):
            return SCALARS[f"ui{8 * size}"]
    return BYTE


def _views(m: Machine, copy: Copy, element: Scalar) -> tuple[Expr, Expr]:
    """Return both sides of a copy as tensors of one shape."""

    def counted(nbytes: Expr) -> Expr:
        number = known(nbytes)
        return nbytes if number is None else m.b.index(number // element.nbytes)

    shape = (*(axis.count for axis in copy.axes), counted(copy.length))
    source = (*(counted(axis.source) for axis in copy.axes), 1)
    target = (*(counted(axis.target) for axis in copy.axes), 1)
    come, go = (replace(pointer, element=element) for pointer in (copy.source, copy.target))
    return bytes_view(m, come, shape, source), bytes_view(m, go, shape, target)


# grouped copies


_BURSTS = {"nburst": Word(Layout.PLAIN, "iii", required=True), "loop": Word(Layout.PLAIN, "iii", repeated=True)}


def _axes(m: Machine, op: Op) -> tuple[Axis, ...]:
    """Return the repetitions of a copy, the outermost first; the text has the innermost first."""
    found = [c.values for c in op.clauses if c.name == "nburst"] + [c.values for c in op.clauses if c.name == "loop"]
    return tuple(Axis(*(m.index(v) for v in values)) for values in reversed(found))


_PADDED = {**_BURSTS, "pad": Word(Layout.PLAIN, "si?i?")}


@declare("pto.mte_gm_ub", Form("glii", words=_PADDED), is_by_bytes=True, counts=I64)
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
    run(m, Copy(source, target, m.b.index(length), _axes(m, op)))


@declare("pto.mte_ub_ub", Form("lli", words=_BURSTS), is_by_bytes=True, counts=I64)
@declare("pto.mte_ub_l1", Form("lpi", words=_BURSTS), is_by_bytes=True, counts=I64)
def _between(m: Machine, op: Op, source: Pointer, target: Pointer, blocks: Expr) -> None:
    """Blocks of 32 bytes with gaps between the bursts."""
    length = m.b.mul(m.b.index(blocks), BLOCK)
    axes = tuple(
        Axis(a.count, m.b.add(length, m.b.mul(a.source, BLOCK)), m.b.add(length, m.b.mul(a.target, BLOCK)))
        for a in _axes(m, op)
    )
    run(m, Copy(source, target, length, axes))


# looped copies


_WAYS = {"pto.copy_gm_to_ubuf": "outtoub", "pto.copy_ubuf_to_gm": "ubtoout"}
_SETTINGS = tuple(
    f"set_{name}_{way}" for way in _WAYS.values() for name in ("loop_size", "loop1_stride", "loop2_stride")
)


def _is_straight(m: Machine) -> bool:
    """Return whether settings are only made by the entry itself, outside of loops and branches."""
    for func in m.funcs:
        ops = func.body.ops if func.body else []
        outside = ops if func is m.calls[0] else []
        if any(
            inner.name.removeprefix("pto.") in _SETTINGS for op in ops for inner in op.walk() if inner not in outside
        ):
            return False
    return True


@declare(f"pto.{' '.join(_SETTINGS)}", Form("ii"), counts=I64)
def _set(m: Machine, op: Op, *numbers: Expr) -> None:
    """Note two numbers: here where that is all that can happen, else in memory where the program finds them."""
    name = op.name.removeprefix("pto.")
    if _is_straight(m):
        m.settings[name] = m.b.index(numbers[0]), m.b.index(numbers[1])
        return
    for which, value in enumerate(numbers):
        set_cell(m, (name, which), value)


def _setting(m: Machine, name: str) -> tuple[Expr, Expr]:
    """Return the two numbers of a setting, zero where nobody made it."""
    if name in m.settings or _is_straight(m):
        return m.settings.get(name, (m.b.index(0), m.b.index(0)))
    return get_cell(m, (name, 0)), get_cell(m, (name, 1))


def _outer(m: Machine, op: Op) -> tuple[Axis, ...]:
    """Return the two outer loops as they are set; a size of zero, which is what nobody set, means once."""
    way, one = _WAYS[op.name], m.b.index(1)
    sizes = _setting(m, f"set_loop_size_{way}")
    counts = [m.b.scalar("max", size, one) for size in sizes]
    strides = [_setting(m, f"set_loop{loop}_stride_{way}") for loop in (1, 2)]
    return Axis(counts[1], *strides[1]), Axis(counts[0], *strides[0])


@declare("pto.copy_gm_to_ubuf", Form("glx*"), is_by_bytes=True, counts=I64)
def _copy_in(m: Machine, op: Op, come: Pointer, go: Pointer) -> None:
    """Operands: bursts and their length, padding left and right, and strides at the end, source first."""
    if len(op.operands) != 11:
        raise UnsupportedFeatureError(f"{op.name} takes 11 operands, got {len(op.operands)}")
    count, length, left, right = (m.index(v) for v in op.operands[3:7])
    if known(left) != 0 or known(right) != 0:
        raise UnsupportedFeatureError(f"{op.name} cannot pad here", help="use pto.mte_gm_ub with pad(...)")
    source, target = (m.index(v) for v in op.operands[9:])
    run(m, Copy(come, go, length, (*_outer(m, op), Axis(count, source, target))))


@declare("pto.copy_ubuf_to_gm", Form("lgx*"), is_by_bytes=True, counts=I64)
def _copy_out(m: Machine, op: Op, come: Pointer, go: Pointer) -> None:
    """Operands: bursts and their length, and strides at the end, the target's first."""
    if len(op.operands) != 8:
        raise UnsupportedFeatureError(f"{op.name} takes 8 operands, got {len(op.operands)}")
    count, length = (m.index(v) for v in op.operands[3:5])
    target, source = (m.index(v) for v in op.operands[6:])
    run(m, Copy(come, go, length, (*_outer(m, op), Axis(count, source, target))))
