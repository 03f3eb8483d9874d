"""Crews: work items that run a function together, and the arrays in which each keeps what is its own."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from tilewright.core.expr import Const, Expr, Var, constant
from tilewright.core.types import ScalarType
from tilewright.dtypes import BOOL, INDEX, INT64, UINT8, DataType
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import element_of
from tilewright.pto.machine.machine import Machine, Place
from tilewright.pto.machine.threads import WARP
from tilewright.pto.machine.tiles import bytes_view
from tilewright.pto.machine.values import Lowered, Number
from tilewright.pto.module import Op, Value
from tilewright.pto.types import SCALARS, Scalar, Space
from tilewright.records import record

_SCALARS = {scalar.dtype: scalar for name, scalar in SCALARS.items() if not scalar.is_packed and name[0] != "s"}


_STORED = {INDEX: INT64, BOOL: UINT8}
"""What numbers are in memory that are something else outside of it."""


@record
class Array:
    """A number of each work item, in memory."""

    view: Expr
    dtype: DataType


@record
class Kept:
    """A value of which each work item has its own: arrays of its parts."""

    like: Lowered
    arrays: tuple[Array, ...]


class Crew:
    """A group of work items that runs a function together: from number `first` on, `count` of them, at most `room`."""

    def __init__(self, m: Machine, extents: Place, room: int, first: Expr, count: Expr) -> None:
        self.m = m
        self.extents = extents
        self.room = room
        self.first = first
        self.count = count
        self.mask: Array | None = None
        """The array that says who takes part, where not all do."""
        self.kept: dict[Value, Kept] = {}

    # arrays

    def array(self, dtype: DataType) -> Array:
        """Return an array with a place for each work item."""
        m, element = self.m, _SCALARS[_STORED.get(dtype, dtype)]
        place = m.memory.apart(Space.VEC, element, self.room * element.nbytes)
        return Array(m.once(place, lambda: bytes_view(m, place, (self.room,), (1,))), dtype)

    def get(self, array: Array, index: Expr) -> Expr:
        """Return a number of one work item."""
        return self.m.b.cast(self.m.b.get(array.view, index), array.dtype)

    def set(self, array: Array, value: Expr, index: Expr) -> None:
        """Set a number of one work item."""
        self.m.b.set(array.view, self.m.b.cast(value, _STORED.get(array.dtype, array.dtype)), index)

    def at(self, value: Value, index: Expr) -> Expr:
        """Return what a scalar is for one work item."""
        kept = self.kept.get(value)
        return self.m.expr(value) if kept is None else self.get(kept.arrays[0], index)

    def made(self, value: Value) -> Array:
        """Return the array of a number that an op makes for each work item."""
        dtype = value.of(Scalar).dtype
        self.kept[value] = Kept(Number(Var("kept", ScalarType(dtype))), (self.array(dtype),))
        return self.kept[value].arrays[0]

    def fetch(self, value: Value, index: Expr) -> Lowered:
        """Return a value as one work item has it."""
        kept = self.kept.get(value)
        if kept is None:
            return self.m.values[value]
        return kept.like.having([self.get(array, index) for array in kept.arrays])

    def arrays(self, value: Lowered) -> Kept:
        """Return arrays for all parts of a value."""
        return Kept(value, tuple(self.array(element_of(part)) for part in self.m.parts(value)))

    def keep(self, values: Sequence[Value], index: Expr) -> None:
        """Store what a work item will need after this phase."""
        m = self.m
        for value in values:
            parts = m.parts(m.values[value])
            if any(not isinstance(part, Const) for part in parts):
                if value not in self.kept:
                    self.kept[value] = self.arrays(m.values[value])
                self.put(self.kept[value], parts, index)

    def put(self, kept: Kept, parts: Sequence[Expr], index: Expr) -> None:
        """Store the parts of a value for one work item."""
        for array, part in zip(kept.arrays, parts, strict=True):
            self.set(array, part, index)

    # who runs

    def takes_part(self, index: Expr) -> Expr | None:
        """Return whether a work item takes part, None where all do."""
        return None if self.mask is None else self.get(self.mask, index)

    @contextmanager
    def everyone(self) -> Generator[Expr]:
        """Write a loop over all work items, those that take no part too; yield the place of each."""
        with self.m.b.loop(0, self.count, hint="item") as index:
            index.bounds = (0, self.room - 1)
            yield index

    @contextmanager
    def each(self) -> Generator[Expr]:
        """Write a loop over the work items that take part; yield the place of each."""
        with self.everyone() as index, self.among(index):
            yield index

    @contextmanager
    def among(self, index: Expr) -> Generator[None]:
        """Write a branch around what a work item does where it takes part."""
        condition = self.takes_part(index)
        if condition is None:
            yield
            return
        with self.m.b.when(condition):
            yield

    def flags(self, holds: Callable[[Expr], Expr]) -> Array:
        """Return an array of who takes part here and of whom a condition holds."""
        flags = self.array(BOOL)
        with self.everyone() as index:
            self.set(flags, constant(False, BOOL), index)
            with self.among(index):
                self.set(flags, holds(index), index)
        return flags

    @contextmanager
    def narrowed(self, holds: Callable[[Expr], Expr]) -> Generator[None]:
        """Let only those take part of whom a condition holds."""
        flags = self.flags(holds)
        outer, self.mask = self.mask, flags
        yield
        self.mask = outer

    def check_together(self, message: str) -> None:
        """Stop the program where some take part here and others do not."""
        if self.mask is None:
            return
        m = self.m
        here = m.b.held(m.b.index(0), "here")
        with self.each():
            m.b.assign(here, m.b.add(here, 1))
        nobody, everybody = (m.b.scalar("eq", here, number) for number in (m.b.index(0), self.count))
        m.b.act("system.device_assert", condition=m.b.scalar("or_", nobody, everybody), message=message)

    @contextmanager
    def warps(self) -> Generator[tuple[Expr, Expr]]:
        """Write a loop over warps; yield the place of a warp's first work item, and the one behind its last."""
        m = self.m
        if self.room <= WARP:
            yield m.b.index(0), self.count
            return
        with m.b.loop(0, self.count, WARP, hint="warp") as first:
            first.bounds = (0, self.room - WARP)
            yield first, m.b.least(m.b.add(first, WARP), self.count)


def crew_of(m: Machine, op: Op) -> Crew:
    """Return the work items that meet at an op."""
    if not isinstance(m.simt.crew, Crew):
        raise UnsupportedFeatureError(
            f"`{op.name}` is for the work items of a launch, and none runs here",
            help="put it into a function with `pto.simt_entry`, and launch that with `pto.simt_launch`",
        )
    return m.simt.crew
