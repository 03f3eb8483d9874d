"""Copies between memories: bursts of bytes, repeated at strides.

Copies to and from global memory count bytes and their strides lead from one start to the next; copies between local
memories count blocks of 32 bytes and the gaps between bursts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tilewright.core.expr import Expr
from tilewright.errors import OutOfBoundsError, UnsupportedFeatureError
from tilewright.pto.lower.build import known
from tilewright.pto.lower.machine import Machine, lowers
from tilewright.pto.lower.registers import BLOCK
from tilewright.pto.lower.tiles import bytes_view
from tilewright.pto.lower.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.types import I64, SCALARS, Scalar

BYTE = SCALARS["ui8"]


@dataclass(frozen=True)
class Axis:
    """A repetition: how often, and how many bytes lie between one start and the next on either side."""

    count: Expr
    source: Expr
    target: Expr

    @property
    def numbers(self) -> tuple[int | None, int | None, int | None]:
        """The three, where they are known."""
        return known(self.count), known(self.source), known(self.target)


@dataclass(frozen=True)
class Copy:
    """Bytes from one place to another: a run of `length`, repeated along axes, the outermost first."""

    source: Pointer
    target: Pointer
    length: Expr
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class Pad:
    """What a load puts before (`left` elements) and behind the bytes of each row."""

    value: Expr
    element: Scalar
    left: Expr
    right: Expr


def run(m: Machine, copy: Copy) -> None:
    """Emit a copy."""
    lengths = (known(copy.length), *(n for axis in copy.axes for n in axis.numbers))
    numbers = [n for n in lengths if n is not None]
    if any(n < 0 for n in numbers):
        raise OutOfBoundsError(f"lengths and strides are not negative, got {min(numbers)}")
    counts = [known(copy.length), *(known(axis.count) for axis in copy.axes)]
    if 0 in counts:
        return
    if len(numbers) == len(lengths):
        _run_known(m, _merged(m, copy))
        return
    views = _views(m, copy, BYTE)
    zeros = (0,) * (len(copy.axes) + 1)
    m.b.do("tensor.assemble", target=views[1], source=views[0], offset=zeros)


def _merged(m: Machine, copy: Copy) -> Copy:
    """Return the same copy with rows that follow each other without a gap as one."""
    axes = [axis for axis in copy.axes if known(axis.count) != 1]
    length = known(copy.length) or 0
    while axes and axes[-1].numbers[1:] == (length, length):
        length *= axes.pop().numbers[0] or 0
    return replace(copy, length=m.b.index(length), axes=tuple(axes))


def _run_known(m: Machine, copy: Copy) -> None:
    """Emit a copy of known extents: a tile in and out."""
    element = _widest(copy)
    views = _views(m, replace(copy, axes=copy.axes or (Axis(m.b.index(1), m.b.index(0), m.b.index(0)),)), element)
    shape = (
        *((known(axis.count) or 0) for axis in copy.axes or (None,) if axis),
        (known(copy.length) or 0) // element.nbytes,
    )
    shape = (1, *shape) if len(shape) == 1 else shape
    loaded = m.b.op("tile.load", tensor=views[0], offsets=(0,) * len(shape), shapes=shape)
    m.b.do("tile.store", tile=loaded, offsets=(0,) * len(shape), output_tensor=views[1])


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
    one = m.b.index(1)
    source = (*(counted(axis.source) for axis in copy.axes), one)
    target = (*(counted(axis.target) for axis in copy.axes), one)
    return (
        bytes_view(m, replace(copy.source, element=element), shape, source),
        bytes_view(m, replace(copy.target, element=element), shape, target),
    )


# grouped copies


def _axes(m: Machine, op: Op) -> tuple[Axis, ...]:
    """Return the repetitions of a copy, the outermost first; the text has the innermost first."""
    found = [c.values for c in op.clauses if c.name == "nburst"] + [c.values for c in op.clauses if c.name == "loop"]
    return tuple(Axis(*(m.index(v) for v in values)) for values in reversed(found))


def _pointers(m: Machine, op: Op) -> tuple[Pointer, Pointer]:
    return m.get(op.operands[0], Pointer), m.get(op.operands[1], Pointer)


@lowers("pto.mte_gm_ub")
def _load(m: Machine, op: Op) -> None:
    copy = Copy(*_pointers(m, op), m.index(op.operands[3]), _axes(m, op))
    given = op.clause("pad")
    if given is None:
        run(m, copy)
        return
    element = copy.target.element
    left, right, *_ = (*(m.index(v) for v in given[1:]), m.b.index(0), m.b.index(0))
    pad = Pad(m.b.cast(m.expr(given[0]), element.dtype, "rint"), element, left, right)
    _run_padded(m, copy, pad)


def _run_padded(m: Machine, copy: Copy, pad: Pad) -> None:
    """Fill the rows of the target, then copy behind their left padding."""
    size = pad.element.nbytes
    shift = m.b.mul(pad.left, size)
    needed = m.b.add(m.b.add(shift, copy.length), m.b.mul(pad.right, size))
    whole = m.b.scalar("max", needed, copy.axes[-1].target)
    counts = [known(axis.count) for axis in copy.axes]
    steps = [axis.numbers[2] for axis in copy.axes]
    row = known(whole)
    target = copy.target
    if (
        row is not None
        and row % size == 0
        and None not in counts
        and all(s is not None and s % size == 0 for s in steps)
    ):
        shape = (*(n or 0 for n in counts), row // size)
        if not prod(shape):
            return
        strides = (*((s or 0) // size for s in steps), 1)
        view = bytes_view(m, target, tuple(map(m.b.index, shape)), tuple(map(m.b.index, strides)))
        filled = m.b.op("tile.full", shape=shape, dtype=pad.element.dtype, value=pad.value)
        m.b.do("tile.store", tile=filled, offsets=(0,) * len(shape), output_tensor=view)
    else:
        _fill(m, copy, pad, whole)
    run(m, replace(copy, target=replace(target, offset=m.b.add(target.offset, shift))))


def _fill(m: Machine, copy: Copy, pad: Pad, row: Expr) -> None:
    """Emit the filling of rows whose extents only the running program knows, element by element."""
    size = m.b.index(pad.element.nbytes)
    counts = (*(axis.count for axis in copy.axes), m.b.scalar("floordiv", row, size))
    strides = (*(m.b.scalar("floordiv", axis.target, size) for axis in copy.axes), m.b.index(1))
    view = bytes_view(m, copy.target, counts, strides)

    def level(indices: tuple[Expr, ...]) -> None:
        if len(indices) == len(counts):
            m.b.do("tensor.write", x=view, indices=indices, value=pad.value)
            return
        with m.b.loop(0, counts[len(indices)]) as index:
            level((*indices, index))

    level(())


@lowers("pto.mte_ub_gm")
def _store(m: Machine, op: Op) -> None:
    run(m, Copy(*_pointers(m, op), m.index(op.operands[2]), _axes(m, op)))


@lowers("pto.mte_ub_ub", "pto.mte_ub_l1")
def _between(m: Machine, op: Op) -> None:
    """Blocks of 32 bytes with gaps between the bursts."""
    length = m.b.mul(m.index(op.operands[2]), BLOCK)
    axes = tuple(
        Axis(a.count, m.b.add(length, m.b.mul(a.source, BLOCK)), m.b.add(length, m.b.mul(a.target, BLOCK)))
        for a in _axes(m, op)
    )
    run(m, Copy(*_pointers(m, op), length, axes))


# copies whose outer loops are settings of the machine


_WAYS = {"pto.copy_gm_to_ubuf": "outtoub", "pto.copy_ubuf_to_gm": "ubtoout"}
_SETTINGS = tuple(
    f"set_{name}_{way}" for way in _WAYS.values() for name in ("loop_size", "loop1_stride", "loop2_stride")
)


def _is_straight(m: Machine) -> bool:
    """Return whether settings are only made by the entry itself, outside of loops and branches."""
    names = {f"pto.{name}" for name in _SETTINGS}
    for func in m.funcs.values():
        ops = func.body.ops if func.body else []
        outside = ops if func.name == m.calls[0] else []
        if any(inner.name in names for op in ops for inner in op.walk() if inner not in outside):
            return False
    return True


@lowers(*(f"pto.{name}" for name in _SETTINGS))
def _set(m: Machine, op: Op) -> None:
    """Note two numbers: here where that is all that can happen, else in memory where the program finds them."""
    name = op.name.removeprefix("pto.")
    if _is_straight(m):
        m.settings[name] = m.index(op.operands[0]), m.index(op.operands[1])
        return
    for which, value in enumerate(op.operands):
        number = m.b.cast(m.expr(value), I64.dtype)
        m.b.do("tensor.write", x=_cell(m, name, which), indices=(0,), value=number)


def _cell(m: Machine, name: str, which: int) -> Expr:
    one = m.b.index(1)
    return bytes_view(m, m.memory.cell((name, which), I64), (one,), (one,))


def _setting(m: Machine, name: str) -> tuple[Expr, Expr]:
    """Return the two numbers of a setting, zero where nobody made it."""
    if name in m.settings or _is_straight(m):
        return m.settings.get(name, (m.b.index(0), m.b.index(0)))
    first, second = (m.b.index(m.b.op("tensor.read", x=_cell(m, name, i), indices=(0,))) for i in (0, 1))
    return first, second


def _outer(m: Machine, op: Op) -> tuple[Axis, ...]:
    """Return the two outer loops as they are set; a size of zero, which is what nobody set, means once."""
    way, one = _WAYS[op.name], m.b.index(1)
    sizes = _setting(m, f"set_loop_size_{way}")
    counts = [m.b.scalar("max", size, one) for size in sizes]
    strides = [_setting(m, f"set_loop{loop}_stride_{way}") for loop in (1, 2)]
    return Axis(counts[1], *strides[1]), Axis(counts[0], *strides[0])


@lowers("pto.copy_gm_to_ubuf")
def _copy_in(m: Machine, op: Op) -> None:
    """Operands: bursts and their length, padding left and right, and strides at the end, source first."""
    if len(op.operands) != 11:
        raise UnsupportedFeatureError(f"{op.name} takes 11 operands, got {len(op.operands)}")
    count, length, left, right = (m.index(v) for v in op.operands[3:7])
    if known(left) != 0 or known(right) != 0:
        raise UnsupportedFeatureError(f"{op.name} cannot pad here", help="use pto.mte_gm_ub with pad(...)")
    source, target = (m.index(v) for v in op.operands[9:])
    run(m, Copy(*_pointers(m, op), length, (*_outer(m, op), Axis(count, source, target))))


@lowers("pto.copy_ubuf_to_gm")
def _copy_out(m: Machine, op: Op) -> None:
    """Operands: bursts and their length, and strides at the end, the target's first."""
    if len(op.operands) != 8:
        raise UnsupportedFeatureError(f"{op.name} takes 8 operands, got {len(op.operands)}")
    count, length = (m.index(v) for v in op.operands[3:5])
    target, source = (m.index(v) for v in op.operands[6:])
    run(m, Copy(*_pointers(m, op), length, (*_outer(m, op), Axis(count, source, target))))
