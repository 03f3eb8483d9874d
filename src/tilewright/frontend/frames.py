"""Frames: functions being specialized, and which axes of their parameters turned out to be dynamic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from tilewright.core.expr import Symbol
from tilewright.core.types import Extent
from tilewright.errors import DynamicConflictError
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.names import free_name
from tilewright.frontend.signature import axis_of
from tilewright.records import mutable, record
from tilewright.source import UNKNOWN, Span

Axis = tuple[int, int]
"""The place of a parameter among the kernel's, and one of its axes."""


@record
class DynamicAxis:
    """How an axis became dynamic: its symbol, whether the function itself named it, where, and by which parameter."""

    symbol: str
    is_named: bool
    span: Span
    owner: int | None = None


@mutable
class Frame:
    """One function being specialized: the axes of its parameters that became dynamic, and by what name."""

    kernel: Kernel
    dynamic_names: dict[str, tuple[str, Span]]
    """The variables that hold `pl.dynamic` names, anywhere in the program, with the name and where it was met."""
    call: Span = UNKNOWN
    """Where it was called with the arguments it is made for."""
    dynamic: dict[Axis, DynamicAxis] = field(default_factory=dict[Axis, DynamicAxis])
    names: dict[Extent, str] = field(default_factory=dict[Extent, str])
    """What the caller's extents are called here."""
    open: dict[Axis, str] = field(default_factory=dict[Axis, str])
    """The axes that already the caller does not know, with their symbols."""

    def position(self, parameter: str) -> int:
        """Return the place of a parameter among the kernel's."""
        return [p.name for p in self.kernel.parameters].index(parameter)

    def state(self, axis: Axis, symbol: str, span: Span) -> None:
        """Note that an annotation names an axis."""
        self.dynamic.setdefault(axis, DynamicAxis(symbol, True, span, axis[0]))

    def meet(self, variable: str, symbol: str, span: Span) -> None:
        """Note that a variable holds a `pl.dynamic` name; DynamicConflictError when it holds another elsewhere."""
        known, first = self.dynamic_names.setdefault(variable, (symbol, span))
        if known != symbol:
            message = f"`{variable}` is pl.dynamic('{known}') and pl.dynamic('{symbol}') in one program"
            help = "one variable, one name: rename one of them"
            raise DynamicConflictError(message, spans=[span], notes=[f"'{known}' at {first}"], help=help)

    def fresh(self, name: str) -> str:
        """Return a symbol that no axis has yet, `name` itself where that is free."""
        return free_name(name, {axis.symbol for axis in self.dynamic.values()})

    def opened(self, axis: Axis, parameter: str, have: Extent) -> Symbol:
        """Return the symbol of an axis whose extent the caller does not know: the caller's own, where that is free."""
        taken = {*self.names.values(), *self.open.values()}
        wished = [have.name] if isinstance(have, Symbol) else []
        wished += [f"{parameter}_{axis[1]}", *(f"{parameter}_{axis[1]}_{i}" for i in range(1, len(taken) + 2))]
        known = self.names.get(have) if have is not None else None
        symbol = known or next(name for name in wished if name not in taken)
        self.open[axis] = symbol
        if have is not None:
            self.names[have] = symbol
        return Symbol(symbol)

    def disown(self, axis: Axis) -> None:
        """Give the name of an axis to the parameter that it was named through, so that the axis can have its own."""
        known = self.dynamic.pop(axis)
        assert known.owner is not None
        self.dynamic[known.owner, axis[1]] = known

    def asked(self, have: Extent, met: Extent) -> Axis | None:
        """Return the axis that `have` came from, where `met`, which a helper made dynamic, goes by the same name."""
        by_helper = {axis.symbol for axis in self.dynamic.values() if not axis.is_named}
        return axis_of(have, self) if isinstance(met, Symbol) and met.name in by_helper else None

    def reasons(self) -> Iterator[str]:
        """Yield why extents are not known before the program runs, one line for each symbol."""
        parameters = self.kernel.parameters
        told: set[str] = set()
        for (position, axis), dynamic in self.dynamic.items():
            if dynamic.symbol not in told:
                told.add(dynamic.symbol)
                how = f"'{dynamic.symbol}' at" if dynamic.is_named else f"'{dynamic.symbol}', asked for by the call at"
                yield f"axis {axis} of `{parameters[position].name}` is dynamic: {how} {dynamic.span}"
        for (position, axis), symbol in self.open.items():
            if symbol not in told:
                told.add(symbol)
                yield f"axis {axis} of `{parameters[position].name}` is not known at the call at {self.call}"


class BecomesDynamic(Exception):
    """Axes of a function's parameters turned out to be dynamic: its specialization starts again with them so.

    With `is_named` the function itself named the symbol; otherwise a helper did, and the axes, which that helper knows
    to be equal, get a symbol of their own.
    """

    def __init__(
        self, frame: Frame, axes: Sequence[Axis], symbol: str, is_named: bool, span: Span, owner: int | None = None
    ) -> None:
        self.frame = frame
        self.axes = tuple(axes)
        self.symbol = symbol
        self.is_named = is_named
        self.span = span
        self.owner = owner

    def apply(self) -> None:
        """Make the axes dynamic in their frame."""
        known = [self.frame.dynamic[axis] for axis in self.axes if axis in self.frame.dynamic]
        symbol = self.symbol
        if self.is_named:
            self._make_way()
        else:
            symbol = known[0].symbol if known else self.frame.fresh(symbol)
        for axis in self.axes:
            if axis not in self.frame.dynamic or (self.is_named and not self.frame.dynamic[axis].is_named):
                self.frame.dynamic[axis] = DynamicAxis(symbol, self.is_named, self.span, self.owner)

    def _make_way(self) -> None:
        """Give axes that a helper named alike, and that are others, a symbol of their own."""
        dynamic = self.frame.dynamic
        alike = [axis for axis, known in dynamic.items() if known.symbol == self.symbol and not known.is_named]
        if alike and not set(alike) & set(self.axes):
            other = self.frame.fresh(self.symbol)
            for axis in alike:
                dynamic[axis] = replace(dynamic[axis], symbol=other)
