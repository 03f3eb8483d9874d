"""Entries: the functions of a compiled program that a caller starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright import settings
from tilewright.backends.abi import Number
from tilewright.backends.host import HostProgram
from tilewright.call.argument import Argument
from tilewright.call.backoff import Backoff
from tilewright.call.binding import Bound, bind, bind_described
from tilewright.call.graph_breaks import hide, unread
from tilewright.call.launch import Runner, device_of
from tilewright.call.placement import MISSING
from tilewright.call.rerouting import reroute
from tilewright.call.torch_state import INSTEAD
from tilewright.call.tracing import traced
from tilewright.call.written_calls import CONFIG, Configured, taken
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.core.types import ScalarType, Type
from tilewright.forks import computed_once
from tilewright.frontend.signature import Known, TensorMeta
from tilewright.passes.aliases import actual_directions
from tilewright.programs import metadata
from tilewright.programs.metadata import ParamInfo

if TYPE_CHECKING:
    from tilewright.call.dispatcher import Parameter
    from tilewright.call.targets import Callee, Learned, Slot
    from tilewright.call.warm import Warm


class Entry:
    """One function of a compiled program, called with arrays and numbers by position or by name.

    With every parameter it writes outputs in place and returns None; with the inputs alone it allocates the outputs,
    zero-filled and like the first array given, and returns them. Without output parameters it returns what it returns.
    `specialized` are the numbers that its code was made for: it takes no others.
    """

    def __init__(
        self,
        program: Program,
        function: Function,
        runner: Runner,
        specialized: Mapping[str, Number] | None = None,
        native: HostProgram | None = None,
        enter: Callable[[Callable[..., Any] | None], None] | None = None,
    ) -> None:
        hide()
        self.function = function
        self.specialized: Mapping[str, Number] = {} if specialized is None else specialized
        self._program = program
        self._runner = runner
        self._native = native
        self._enter = enter or partial(reroute, self)
        self._backoff = Backoff()
        self._callees: dict[str, Callee] = {}

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name

    @property
    def param_names(self) -> list[str]:
        """The parameters, in order."""
        return [param.name_hint for param in self.function.params]

    @property
    def param_infos(self) -> list[ParamInfo]:
        """What each parameter is: its name, direction, shape and element type."""
        return metadata.param_infos(self.function)

    @property
    def output_indices(self) -> list[int]:
        """The positions of parameters that are only written."""
        return metadata.output_indices(self.function)

    @property
    def return_types(self) -> tuple[Type, ...]:
        """The types of what the function returns."""
        return self.function.return_types

    @computed_once
    def directions(self) -> tuple[ParamDirection, ...]:
        """What the function really does with each of its parameters, whatever it declares."""
        return actual_directions(self._program, self.function)

    def bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> Bound:
        """Return the arguments of a call, checked as the call itself checks them."""
        return bind(self.function, self.directions, args, named, self.specialized)

    @unread(INSTEAD)
    def __call__(self, *args: Any, config: object = None, **named: Any) -> Any:
        """Run the function. What a `config` says was settled when the program was compiled."""
        if config is not None and CONFIG in self.param_names:
            named[CONFIG], config = config, None
        config, told = taken(config)
        bound = self.bound(args, named)
        is_whole = len(args) + len(named) == len(self.function.params)
        trace = getattr(config, "trace", None)
        with traced(trace, self.function.name):
            result = self._run(bound, is_whole)
        if self._native is not None and not settings.ranges():
            learned = partial(self._learned, self._native, bound, is_whole)
            self._backoff.look(self._new_warm, lambda: _configured(learned(), told, trace))
        return result

    def run_described(self, given: list[Any], described: Mapping[str, Argument]) -> Any:
        """Run the function on arguments that were placed and described elsewhere, `MISSING` for outputs left out."""
        is_whole = not any(value is MISSING for value in given)
        return self._run(bind_described(self.function, self.directions, given, described), is_whole)

    def _run(self, bound: Bound, is_whole: bool) -> Any:
        returned, outputs = self._runner(bound), self.output_indices
        if outputs and is_whole:
            return None
        results = list(returned) or [bound.given[i] for i in outputs]
        return results[0] if len(results) == 1 else tuple(results) if results else None

    # calls that do without Python

    def _new_warm(self) -> Warm:
        from tilewright.call.warm import Warm

        configurable = CONFIG not in self.param_names
        return Warm(self._parameters(), partial(Entry.__call__, self), self._enter, configurable=configurable)

    def _parameters(self) -> list[Parameter]:
        from tilewright.call.dispatcher import Parameter

        names = self.param_names
        may_be_named = CONFIG not in names  # which has a meaning of its own
        return [Parameter(name if may_be_named else "", k in self.output_indices) for k, name in enumerate(names)]

    def _learned(self, native: HostProgram, bound: Bound, is_whole: bool) -> Learned | None:
        """Return a call as a dispatcher learns it, None where it takes none like it; ImportError for all calls."""
        from tilewright.call.targets import Callee, Learned, fits, given_back

        names, returns, lies = self.param_names, self._returns, self.function.turned or self.function.stepped
        if lies or not fits(self.function, len(names), returns):
            raise ImportError
        device = device_of(bound)
        if device not in self._callees:
            self._callees[device] = Callee(native.on(device), self.function)
        outputs = [] if is_whole else self.output_indices
        if outputs and (returns is None or CONFIG in names or not {names[k] for k in outputs} <= {*returns}):
            return None
        slots = [self._slot(bound, k, k in outputs) for k in range(len(names))]
        back = (returns or ()) if outputs else given_back(self.function, returns)
        written = sum(1 << k for k in range(len(names)) if bound.is_written(k))
        return Learned(self._callees[device], slots, [names.index(name) for name in back], written)

    def _slot(self, bound: Bound, position: int, is_made: bool) -> Slot:
        from tilewright.call.targets import Slot, open_bounds, symbols

        param, value, given = self.function.params[position], bound.values[position], bound.given[position]
        if isinstance(value, Argument):
            meta, made = TensorMeta(value.shape, value.dtype), given if is_made else None
            is_filled = is_made and self._callees[value.device].fills(param.name_hint)
            return Slot(meta, param.type, symbols(param.type), made=made, is_filled=is_filled, device=value.device)
        assert isinstance(param.type, ScalarType)
        is_fixed = param.name_hint in self.specialized
        return Slot(
            Known(given), param.type, bounds=None if is_fixed else open_bounds(param.type.dtype, given, param.bounds)
        )

    @computed_once
    def _returns(self) -> tuple[str, ...] | None:
        """The parameters that it gives back, whatever it is called on; None where that is not known."""
        from tilewright.frontend.outputs import returned_parameters

        if self.function.return_types and not self.function.body:
            return None  # a declaration that does not say so
        found = returned_parameters(self.function)
        return None if found is None else tuple(self.param_names[k] for k in found)

    def __repr__(self) -> str:
        return f"<entry {self.name}({', '.join(self.param_names)}) of {self._program.name}>"


def _configured(call: Learned | None, told: Configured | None, trace: str | None) -> Learned | None:
    """Return a call as it was told to run; one that only Python can be told, as one that was told nothing."""
    return None if call is None else replace(call, config=told, trace=trace if told is not None else None)
