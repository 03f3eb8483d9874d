"""Shuffles: lanes that change places, inside registers and by way of indices."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tilewright import dtypes
from tilewright.core.expr import Expr
from tilewright.core.types import ScalarType
from tilewright.dtypes import DataType
from tilewright.pto.lower.build import known
from tilewright.pto.lower.machine import Machine, lowers
from tilewright.pto.lower.predicates import WIDTHS
from tilewright.pto.lower.registers import (
    BLOCK,
    NBYTES,
    UNSIGNED,
    active,
    bitcast,
    dtype_of,
    lanes_of,
    mask_of,
    predicate,
    put,
    scratch,
    spilled,
    take,
    vector,
    vector_type,
    window,
)
from tilewright.pto.lower.streams import squeezed
from tilewright.pto.lower.tiles import bytes_view
from tilewright.pto.lower.values import Pointer, Predicate, Vector
from tilewright.pto.lower.vector_memory import accessed, unsigned
from tilewright.pto.lower.views import moved
from tilewright.pto.module import Op
from tilewright.pto.types import Scalar


def interleaved(m: Machine, lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Return the lanes of two rows in turn, as two rows."""
    lanes, dtype = lanes_of(lhs), dtype_of(lhs)
    buffer, size = scratch(m, 2 * lanes * dtype.get_byte()), lanes * dtype.get_byte()
    for first, row in enumerate((lhs, rhs)):
        put(m, window(m, buffer, dtype, lanes, 2, first), row)
    low, high = (take(m, window(m, buffer, dtype, lanes, offset=at), lanes) for at in (0, size))
    return low, high


def deinterleaved(m: Machine, lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Return the even and the odd lanes of two rows, one behind the other."""
    lanes, dtype = lanes_of(lhs), dtype_of(lhs)
    buffer, size = scratch(m, 2 * lanes * dtype.get_byte()), lanes * dtype.get_byte()
    for offset, row in ((0, lhs), (size, rhs)):
        put(m, window(m, buffer, dtype, lanes, offset=offset), row)
    even, odd = (take(m, window(m, buffer, dtype, lanes, 2, first), lanes) for first in (0, 1))
    return even, odd


@lowers("pto.vintlv", "pto.vdintlv")
def _interleave(m: Machine, op: Op) -> tuple[Vector, Vector]:
    lhs, rhs = (m.get(v, Vector).expr for v in op.operands)
    low, high = (interleaved if op.name == "pto.vintlv" else deinterleaved)(m, lhs, rhs)
    return vector(op, low), vector(op, high, 1)


@lowers(*(f"pto.{name}_{width}" for name in ("pintlv", "pdintlv") for width in WIDTHS))
def _interleave_masks(m: Machine, op: Op) -> tuple[Predicate, Predicate]:
    lhs, rhs = (m.get(v, Predicate).expr for v in op.operands)
    low, high = (interleaved if op.name.startswith("pto.pintlv") else deinterleaved)(m, lhs, rhs)
    return predicate(op, low), predicate(op, high, 1)


@lowers("pto.vbitcast")
def _bitcast(m: Machine, op: Op) -> Vector:
    return vector(op, bitcast(m, m.get(op.operands[0], Vector).expr, vector_type(op.results[0]).element.dtype))


# one lane after the other


def _flat(m: Machine, buffer: Expr, dtype: DataType, count: int) -> Expr:
    return m.b.op("tensor.as_strided", buffer=buffer, shape=(count,), strides=(1,), offset=0, dtype=dtype)


def lane_view(m: Machine, row: Expr) -> Expr:
    """Return the lanes of a row where they can be read one by one."""
    return _flat(m, spilled(m, row), dtype_of(row), lanes_of(row))


def blank_lanes(m: Machine, dtype: DataType, lanes: int) -> tuple[Expr, Expr]:
    """Return lanes to be written one by one, zero to begin with, and the buffer they lie in."""
    buffer = scratch(m, lanes * dtype.get_byte(), zero=True)
    return _flat(m, buffer, dtype, lanes), buffer


def at(m: Machine, view: Expr, index: Expr) -> Expr:
    """Return one element."""
    return m.b.op("tensor.read", x=view, indices=(index,))


def write(m: Machine, view: Expr, index: Expr, value: Expr) -> None:
    """Set one element."""
    m.b.do("tensor.write", x=view, indices=(index,), value=value)


@contextmanager
def lit_lanes(m: Machine, on: Expr | None, lanes: int) -> Generator[Expr]:
    """Write a loop over the lanes whose flags are set."""
    flags = None if on is None else lane_view(m, on)
    with m.b.loop(0, lanes, hint="lane") as lane:
        if flags is None:
            yield lane
            return
        zero = m.b.cast(m.b.index(0), dtypes.UINT8)
        with m.b.when(m.b.scalar("ne", at(m, flags, lane), zero)):
            yield lane


def _position(m: Machine, indices: Expr, lane: Expr) -> Expr:
    """Return an index that a vector holds, without a sign."""
    found = at(m, indices, lane)
    assert isinstance(found.type, ScalarType)
    return m.b.index(m.b.cast(found, UNSIGNED[found.type.dtype.get_byte()]))


@lowers("pto.vselr")
def _lookup(m: Machine, op: Op) -> Vector:
    """Each lane is the lane of the first vector that the second one names, modulo their number."""
    source, index = (m.get(v, Vector) for v in op.operands)
    values, indices = lane_view(m, source.expr), lane_view(m, index.expr)
    made, buffer = blank_lanes(m, source.element.dtype, source.lanes)
    with m.b.loop(0, source.lanes, hint="lane") as lane:
        position = m.b.scalar("bit_and", _position(m, indices, lane), m.b.index(source.lanes - 1))
        write(m, made, lane, at(m, values, position))
    return vector(op, take(m, window(m, buffer, source.element.dtype, source.lanes), source.lanes))


@lowers("pto.vsqz")
def _squeeze(m: Machine, op: Op) -> Vector:
    """The lanes whose mask is set, in front; the machine remembers how many bytes they take."""
    source, mask = m.get(op.operands[0], Vector), mask_of(m, op)
    on = None if mask is None else active(m, mask, source.element.nbytes)
    values = lane_view(m, source.expr)
    made, buffer = blank_lanes(m, source.element.dtype, source.lanes)
    count = m.b.variable(m.b.index(0).type, "count")
    m.b.assign(count, m.b.index(0))
    with lit_lanes(m, on, source.lanes) as lane:
        write(m, made, count, at(m, values, lane))
        m.b.assign(count, m.b.add(count, 1))
    squeezed(m, m.b.mul(count, source.element.nbytes))
    return vector(op, take(m, window(m, buffer, source.element.dtype, source.lanes), source.lanes))


@lowers("pto.vusqz")
def _prefix(m: Machine, op: Op) -> Vector:
    """For each lane, how many lanes before it have their mask set."""
    type_, mask = vector_type(op.results[0]), mask_of(m, op)
    on = None if mask is None else active(m, mask, type_.element.nbytes)
    flags = None if on is None else lane_view(m, on)
    made, buffer = blank_lanes(m, type_.element.dtype, type_.lanes)
    count = m.b.variable(m.b.index(0).type, "count")
    m.b.assign(count, m.b.index(0))
    with m.b.loop(0, type_.lanes, hint="lane") as lane:
        write(m, made, lane, m.b.cast(count, type_.element.dtype))
        step = m.b.index(1) if flags is None else m.b.index(at(m, flags, lane))
        m.b.assign(count, m.b.scalar("add", count, step))
    squeezed(m, m.b.mul(count, type_.element.nbytes))
    return vector(op, take(m, window(m, buffer, type_.element.dtype, type_.lanes), type_.lanes))


# memory by index


@dataclass(frozen=True)
class Elements:
    """The elements behind a pointer, read and written one by one, as far as its memory goes."""

    pointer: Pointer
    view: Expr | None

    def _at(self, m: Machine, index: Expr) -> tuple[Expr, Expr]:
        if self.view is not None:
            return self.view, index
        one = m.b.index(1)
        return bytes_view(m, moved(m, self.pointer, index), (one,), (one,)), m.b.index(0)

    def read(self, m: Machine, index: Expr) -> Expr:
        """Return one element."""
        return at(m, *self._at(m, index))

    def write(self, m: Machine, index: Expr, value: Expr) -> None:
        """Set one element."""
        write(m, *self._at(m, index), value)


def elements_of(m: Machine, pointer: Pointer, element: Scalar) -> Elements:
    """Return what lies from a pointer to the end of its memory; a tile's own bytes are looked up one by one."""
    pointer, size = replace(pointer, element=element), element.nbytes
    if pointer.arena is None:
        return Elements(pointer, None)
    start = known(pointer.offset)
    if start is not None:
        count = m.b.index(max(0, pointer.arena.limit - start) // size)
    else:
        left = m.b.scalar("sub", m.b.index(pointer.arena.limit), pointer.offset)
        count = m.b.scalar("floordiv", left, m.b.index(size))
    pointer.arena.touch(m.b.index(0), pointer.arena.limit)
    return Elements(pointer, bytes_view(m, pointer, (count,), (m.b.index(1),)))


def _of(m: Machine, op: Op) -> Expr:
    return next(v.expr for v in (m.values[o] for o in op.operands[1:]) if isinstance(v, Vector))


@lowers("pto.vgather2", "pto.vgather2_bc")
def _gather(m: Machine, op: Op) -> Vector:
    """Each lane is the element behind the pointer that an index names; bytes are made longer with zeros."""
    pointer, _ = accessed(m, op, 0)
    type_, mask, offsets = vector_type(op.results[0]), mask_of(m, op), _of(m, op)
    lanes = min(lanes_of(offsets), type_.lanes)
    element = unsigned(1) if pointer.element.nbytes < type_.element.nbytes else type_.element
    source, indices = elements_of(m, pointer, element), lane_view(m, offsets)
    made, buffer = blank_lanes(m, type_.element.dtype, type_.lanes)
    on = None if mask is None else active(m, mask, NBYTES // lanes)
    with lit_lanes(m, on, lanes) as lane:
        found = source.read(m, _position(m, indices, lane))
        write(m, made, lane, m.b.cast(found, type_.element.dtype))
    return vector(op, take(m, window(m, buffer, type_.element.dtype, type_.lanes), type_.lanes))


@lowers("pto.vgatherb")
def _gather_blocks(m: Machine, op: Op) -> Vector:
    """Each block of 32 bytes comes from the byte offset that one of the first eight indices names."""
    pointer, _ = accessed(m, op, 0)
    type_, mask = vector_type(op.results[0]), mask_of(m, op)
    source, indices = elements_of(m, pointer, unsigned(1)), lane_view(m, _of(m, op))
    made, buffer = blank_lanes(m, dtypes.UINT8, NBYTES)
    on = None if mask is None else active(m, mask, 4)
    with lit_lanes(m, on, 8) as block:
        start, to = _position(m, indices, block), m.b.mul(block, BLOCK)
        with m.b.loop(0, BLOCK, hint="byte") as byte:
            write(m, made, m.b.scalar("add", to, byte), source.read(m, m.b.scalar("add", start, byte)))
    return vector(op, take(m, window(m, buffer, type_.element.dtype, type_.lanes), type_.lanes))


@lowers("pto.vscatter")
def _scatter(m: Machine, op: Op) -> None:
    """Each lane goes where an index says; of bytes, every other one."""
    source, (pointer, _) = m.get(op.operands[0], Vector), accessed(m, op, 1)
    offsets = next(v.expr for v in (m.values[o] for o in op.operands[2:]) if isinstance(v, Vector))
    lanes, mask = lanes_of(offsets), mask_of(m, op)
    step = source.lanes // lanes
    target = elements_of(m, pointer, source.element)
    values, indices = lane_view(m, source.expr), lane_view(m, offsets)
    on = None if mask is None else active(m, mask, NBYTES // lanes)
    with lit_lanes(m, on, lanes) as lane:
        target.write(m, _position(m, indices, lane), at(m, values, m.b.mul(lane, step)))
