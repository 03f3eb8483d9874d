"""Lanes: the elements of a register, read and written one after the other."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tilewright import dtypes
from tilewright.core.expr import Expr
from tilewright.core.types import ScalarType
from tilewright.dtypes import UNSIGNED, DataType
from tilewright.pto.machine.build import element_of
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import lanes_of, scratch, spilled


def _flat(m: Machine, buffer: Expr, dtype: DataType, count: int) -> Expr:
    return m.b.op("tensor.as_strided", buffer=buffer, shape=(count,), strides=(1,), offset=0, dtype=dtype)


def lane_view(m: Machine, row: Expr) -> Expr:
    """Return the lanes of a row where they can be read one by one."""
    return _flat(m, spilled(m, row), element_of(row), lanes_of(row))


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


def position(m: Machine, indices: Expr, lane: Expr) -> Expr:
    """Return an index that a vector holds, without a sign."""
    found = at(m, indices, lane)
    assert isinstance(found.type, ScalarType)
    return m.b.index(m.b.cast(found, UNSIGNED[found.type.dtype.get_byte()]))
