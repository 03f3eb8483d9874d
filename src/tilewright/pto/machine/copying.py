"""Copying: bytes from one memory to another, in runs that are repeated along axes."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.expr import Expr, Var
from tilewright.dtypes import INT32
from tilewright.errors import OutOfBoundsError
from tilewright.ops.builder import known
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.memory import UNLIMITED
from tilewright.pto.machine.tiles import bytes_view, check_range
from tilewright.pto.machine.values import Pointer
from tilewright.pto.types import SCALARS, Scalar
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


def in_blocks(m: Machine, source: Pointer, target: Pointer, count: Expr, axes: tuple[Axis, ...], unit: int) -> Copy:
    """Return a copy of so many blocks, the strides of whose axes are the gaps between bursts, in blocks."""
    length = m.b.mul(count, unit)
    steps = [[m.b.add(length, m.b.mul(gap, unit)) for gap in (a.source, a.target)] for a in axes]
    return Copy(source, target, length, tuple(Axis(a.count, *step) for a, step in zip(axes, steps, strict=True)))
