"""HostProgram: the functions of a compiled program that a caller starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from tilewright.backends.host import HostProgram
from tilewright.call.arguments import Arguments, Number, bind
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.core.region import Region
from tilewright.core.types import Type
from tilewright.forks import computed_once
from tilewright.passes.aliases import actual_directions
from tilewright.programs import metadata
from tilewright.programs.metadata import ParamInfo
from tilewright.programs.shortcut import Learned, Shortcut, reroute

Runner: TypeAlias = Callable[[str, Sequence[Any]], tuple[Any, ...]]
"""Runs one function by name on regions and numbers; outputs are written in place."""


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
        enter: Callable[[Callable[..., Any]], None] | None = None,
    ) -> None:
        self.function = function
        self.specialized: Mapping[str, Number] = {} if specialized is None else specialized
        self._program = program
        self._runner = runner
        self._shortcut = Shortcut(native, function, partial(Entry.__call__, self), enter or partial(reroute, self))

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

    def bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> Arguments:
        """Return the arguments of a call, checked as the call itself checks them."""
        return bind(self.function, self.directions, args, named, self.specialized)

    def __call__(self, *args: Any, config: object = None, **named: Any) -> Any:
        """Run the function. What a `config` says was settled when the program was compiled."""
        if config is not None and "config" in self.param_names:
            named["config"] = config
        bound = self.bound(args, named)
        returned = self._runner(self.name, bound.values)
        bound.finish(self.directions)
        self._shortcut.learn(Learned(len(args), named, bound), self.directions)
        outputs = self.output_indices
        if outputs and len(args) + len(named) == len(self.function.params):
            return None
        results = [_returned(r, bound) for r in returned] or [bound.given[i] for i in outputs]
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def __repr__(self) -> str:
        return f"<entry {self.name}({', '.join(self.param_names)}) of {self._program.name}>"


def _returned(value: Any, bound: Arguments) -> Any:
    """Return a result as the caller knows it: their own array where it is one, a new one otherwise."""
    if not isinstance(value, Region):
        return value
    for original, region in zip(bound.given, bound.values, strict=True):
        if isinstance(region, Region) and region.data is value.data:
            return original
    return bound.buffer.wrap(value.data)
