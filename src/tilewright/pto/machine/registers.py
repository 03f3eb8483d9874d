"""Registers: what vector ops share. A vector is a one-row tile of 256 bytes, a mask a one-row tile of flags.

Lanes change places through scratch: a fresh buffer that is written under one shape and read under another. Where that
is not enough, elements of registers and of memory are read and written one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import TileType
from tilewright.dtypes import UINT8, UNSIGNED, DataType
from tilewright.ops.builder import element_of, known
from tilewright.pto.machine.elements import cast, columns
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.places import NBYTES
from tilewright.pto.machine.tiles import bytes_view, cell_view, moved
from tilewright.pto.machine.values import Pointer, Predicate
from tilewright.pto.module import Op
from tilewright.pto.types import Scalar, VReg
from tilewright.records import record

BLOCK = 32
"""The bytes that block-wise loads, stores and reductions take together."""


def lanes_of(tile: Expr) -> int:
    """Return how many columns a tile has."""
    assert isinstance(tile.type, TileType)
    return tile.type.shape[-1]


def full(m: Machine, lanes: int, dtype: DataType, value: Expr | float) -> Expr:
    """Return a row of one number."""
    number = value if isinstance(value, Expr) else constant(value, dtype)
    return m.b.tile("full", (1, lanes), dtype, number)


def extended(m: Machine, row: Expr, lanes: int) -> Expr:
    """Return a row with zeros behind it."""
    rest = lanes - lanes_of(row)
    return m.b.tile("concat", row, full(m, rest, element_of(row), 0)) if rest else row


def reshaped(m: Machine, tile: Expr, *shape: int) -> Expr:
    """Return the same elements under another shape."""
    assert isinstance(tile.type, TileType)
    return tile if tile.type.shape == shape else m.b.tile("reshape", tile, shape)


def compared(m: Machine, lhs: Expr, how: CmpType, rhs: Expr) -> Expr:
    """Return the bits of a comparison."""
    return m.b.tile("cmp", lhs, rhs, int(how))


def flags(m: Machine, bits: Expr, lanes: int) -> Expr:
    """Return the bits of a comparison as one byte a lane."""
    return m.b.tile("sel", bits, full(m, lanes, UINT8, 1), full(m, lanes, UINT8, 0))


def iota(m: Machine, lanes: int) -> Expr:
    """Return the numbers of the lanes."""
    return m.once(("lanes", lanes), lambda: columns(m, lanes))


# scratch


def scratch(m: Machine, nbytes: int = NBYTES, zero: bool = False) -> Expr:
    """Return a fresh buffer of bytes."""
    return m.b.do("tensor.create", shape=(nbytes,), dtype=UINT8, init_value=0 if zero else None)


def window(
    m: Machine, buffer: Expr, dtype: DataType, count: int, step: int = 1, first: int = 0, offset: int = 0
) -> Expr:
    """Return a row of elements of a buffer: each `step`-th one, from the `first` one behind a byte offset on."""
    start = offset + first * dtype.get_byte()
    return m.b.do("tensor.as_strided", buffer=buffer, shape=(1, count), strides=(0, step), offset=start, dtype=dtype)


def spilled(m: Machine, row: Expr) -> Expr:
    """Return a buffer that begins with the elements of a row."""
    lanes, dtype = lanes_of(row), element_of(row)
    buffer = scratch(m, lanes * dtype.get_byte())
    m.b.store(window(m, buffer, dtype, lanes), row)
    return buffer


def every(m: Machine, row: Expr, step: int, first: int, count: int) -> Expr:
    """Return each `step`-th lane of a row, from the `first` one on."""
    if step == 1 and first == 0 and count == lanes_of(row):
        return row
    if step == 1:
        return m.b.tile("slice", row, (1, count), (0, first))
    return m.b.load(window(m, spilled(m, row), element_of(row), count, step, first), (1, count))


def apart(m: Machine, row: Expr, step: int, first: int) -> Expr:
    """Return a row's lanes `step` apart, from the `first` lane on, with zeros between them."""
    lanes, dtype = lanes_of(row), element_of(row)
    if step == 1:
        return row
    buffer = scratch(m, lanes * step * dtype.get_byte(), zero=True)
    m.b.store(window(m, buffer, dtype, lanes, step, first), row)
    return m.b.load(window(m, buffer, dtype, lanes * step), (1, lanes * step))


def bitcast(m: Machine, row: Expr, dtype: DataType) -> Expr:
    """Return the bytes of a row as elements of another type."""
    held = element_of(row)
    if held == dtype:
        return row
    if held.is_int() and dtype.is_int() and held.bits == dtype.bits:
        return cast(m, row, dtype)
    count = lanes_of(row) * held.get_byte() // dtype.get_byte()
    return m.b.load(window(m, spilled(m, row), dtype, count), (1, count))


# masks


def regrained(m: Machine, row: Expr, want: int) -> Expr:
    """Return flags as those of lanes `want` bytes wide.

    A lane's flag stands at its first byte; the flags at other bytes are zero.
    """
    have = grain(row)
    if have == want:
        return row
    if want > have:
        return every(m, row, want // have, 0, NBYTES // want)
    return apart(m, row, have // want, 0)


def grain(row: Expr) -> int:
    """Return how many bytes of a register each of some flags stands for."""
    return NBYTES // lanes_of(row)


def active(m: Machine, mask: Predicate, nbytes: int) -> Expr | None:
    """Return the flags of a mask for elements of a size; None where all are set."""
    if mask.is_all and grain(mask.expr) <= nbytes:
        return None
    return regrained(m, mask.expr, nbytes)


def lit_lanes_of(m: Machine, mask: Predicate) -> Expr:
    """Return the flags of a mask's own lanes."""
    return regrained(m, mask.expr, mask.bits // 8)


def chosen(m: Machine, on: Expr | None, then: Expr, other: Expr) -> Expr:
    """Return elements of one row where flags are set (None: everywhere), of another elsewhere."""
    if on is None:
        return then
    return m.b.tile("sel", compared(m, on, CmpType.NE, constant(0, UINT8)), then, other)


def kept(m: Machine, row: Expr, on: Expr | None) -> Expr:
    """Return a row with zeros where flags are not set."""
    if on is None:
        return row
    bits = compared(m, on, CmpType.NE, constant(0, UINT8))
    return m.b.tile("sels", bits, row, scalar=constant(0, element_of(row)))


def masked(m: Machine, row: Expr, mask: Predicate | None) -> Expr:
    """Return a row with zeros where a mask is not set."""
    return row if mask is None else kept(m, row, active(m, mask, element_of(row).get_byte()))


def mask_of(m: Machine, op: Op) -> Predicate | None:
    """Return the mask among the operands of an op, or None where it has none."""
    found = (m.values[v] for v in op.operands)
    return next((v for v in found if isinstance(v, Predicate)), None)


def lit(m: Machine, op: Op, nbytes: int) -> Expr | None:
    """Return the flags of an op's mask for elements of a size; None where all are set, or there is no mask."""
    mask = mask_of(m, op)
    return None if mask is None else active(m, mask, nbytes)


# lanes one after the other


def _flat(m: Machine, buffer: Expr, dtype: DataType, count: int) -> Expr:
    return m.b.do("tensor.as_strided", buffer=buffer, shape=(count,), strides=(1,), offset=0, dtype=dtype)


def lane_view(m: Machine, row: Expr) -> Expr:
    """Return the lanes of a row where they can be read one by one."""
    return _flat(m, spilled(m, row), element_of(row), lanes_of(row))


def blank_lanes(m: Machine, dtype: DataType, lanes: int) -> tuple[Expr, Expr]:
    """Return lanes to be written one by one, zero to begin with, and the buffer they lie in."""
    buffer = scratch(m, lanes * dtype.get_byte(), zero=True)
    return _flat(m, buffer, dtype, lanes), buffer


def written(m: Machine, op: Op, buffer: Expr) -> Expr:
    """Return the lanes of a buffer as the vector that an op results in."""
    type_ = op.results[0].of(VReg)
    return m.b.load(window(m, buffer, type_.element.dtype, type_.lanes), (1, type_.lanes))


@contextmanager
def lit_lanes(m: Machine, on: Expr | None, lanes: int) -> Generator[Expr]:
    """Write a loop over the lanes whose flags are set."""
    flags = None if on is None else lane_view(m, on)
    with m.b.loop(0, lanes, hint="lane") as lane:
        if flags is None:
            yield lane
            return
        with m.b.when(m.b.scalar("ne", m.b.get(flags, lane), constant(0, UINT8))):
            yield lane


def position(m: Machine, indices: Expr, lane: Expr) -> Expr:
    """Return an index that a vector holds, without a sign."""
    found = m.b.get(indices, lane)
    return m.b.index(m.b.cast(found, UNSIGNED[element_of(found).get_byte()]))


@record
class Elements:
    """Elements by their number: how to read one, and how to write one."""

    get: Callable[[Expr], Expr]
    set: Callable[[Expr, Expr], None]

    def every(self, m: Machine, step: int, first: int = 0) -> Elements:
        """Return each `step`-th one, from the `first` one on."""

        def at(index: Expr) -> Expr:
            place = m.b.mul(index, step)
            return m.b.add(place, first) if first else place

        return Elements(lambda i: self.get(at(i)), lambda i, value: self.set(at(i), value))


def elements_in(m: Machine, view: Expr, *before: Expr) -> Elements:
    """Return the elements along the last axis of a view."""
    return Elements(lambda i: m.b.get(view, *before, i), lambda i, value: m.b.set(view, value, *before, i))


def elements_of(m: Machine, pointer: Pointer, element: Scalar) -> Elements:
    """Return what lies from a pointer to the end of its memory; a tile's own bytes are looked up one by one."""
    pointer, size = replace(pointer, element=element), element.nbytes
    if pointer.arena is None:

        def at(index: Expr) -> Expr:
            return cell_view(m, moved(m, pointer, index))

        return Elements(lambda i: m.b.get(at(i), 0), lambda i, value: m.b.set(at(i), value, 0))
    start = known(pointer.offset)
    if start is not None:
        count = m.b.index(max(0, pointer.arena.limit - start) // size)
    else:
        left = m.b.scalar("sub", m.b.index(pointer.arena.limit), pointer.offset)
        count = m.b.scalar("floordiv", left, m.b.index(size))
    pointer.arena.touch(m.b.index(0), pointer.arena.limit)
    return elements_in(m, bytes_view(m, pointer, (count,), (1,)))
