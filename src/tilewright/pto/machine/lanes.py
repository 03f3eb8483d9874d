"""Lanes: elements of registers and of memory, read and written one after the other."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import UINT8, UNSIGNED, DataType
from tilewright.pto.machine.build import element_of, known
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import lanes_of, scratch, spilled, window
from tilewright.pto.machine.tiles import bytes_view, cell_view, moved
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.types import Scalar, VReg
from tilewright.records import record


def _flat(m: Machine, buffer: Expr, dtype: DataType, count: int) -> Expr:
    return m.b.op("tensor.as_strided", buffer=buffer, shape=(count,), strides=(1,), offset=0, dtype=dtype)


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
