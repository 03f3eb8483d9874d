"""Compiled programs: what `ir.compile` returns, called with tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilewright.backends.cpu.native import NativeProgram
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.core.region import Region
from tilewright.core.types import ScalarType, TensorType, Type
from tilewright.dtypes import DataType
from tilewright.runtime.arguments import Arguments, bind
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.writes import actual_directions

Runner: TypeAlias = Callable[[str, Sequence[Any]], tuple[Any, ...]]
"""Runs one function by name on regions and numbers; outputs are written in place."""


@dataclass(frozen=True)
class ParamInfo:
    """One parameter of an entry: `shape` is None for scalars, and -1 stands for a dynamic extent."""

    name: str
    direction: ParamDirection
    shape: tuple[int, ...] | None
    dtype: DataType


def extract_param_infos(program: Program) -> tuple[list[ParamInfo], list[int], tuple[Type, ...]]:
    """Return the entry's parameters, the positions of its pure outputs, and its return types."""
    entry = entry_of(program)
    infos = [_info(p.name_hint, d, p.type) for p, d in zip(entry.params, entry.param_directions, strict=True)]
    outputs = [i for i, d in enumerate(entry.param_directions) if d is ParamDirection.Out]
    return infos, outputs, entry.return_types


def _info(name: str, direction: ParamDirection, type_: Type) -> ParamInfo:
    if isinstance(type_, TensorType):
        return ParamInfo(name, direction, tuple(e if isinstance(e, int) else -1 for e in type_.shape), type_.dtype)
    assert isinstance(type_, ScalarType)
    return ParamInfo(name, direction, None, type_.dtype)


def entry_of(program: Program) -> Function:
    """Return the one function a caller starts; ValueError when there is none or several."""
    match program.entries:
        case (entry,):
            return entry
        case ():
            raise ValueError(f"no Orchestration function in program {program.name}, and more than one function")
        case entries:
            names = ", ".join(f.name for f in entries)
            raise ValueError(f"program {program.name} has several entries: {names}")


class Stages(Mapping[str, str]):
    """The texts a program went through on its way, by name; each is made when it is looked at."""

    def __init__(self, makers: Mapping[str, Callable[[], str]]) -> None:
        self._makers = makers

    def joined(self, others: Mapping[str, Callable[[], str]]) -> Stages:
        """Return these stages after others."""
        return Stages({**others, **self._makers})

    def __getitem__(self, name: str) -> str:
        if name not in self._makers:
            raise KeyError(f"there is no stage {name!r}; there are {', '.join(self._makers)}")
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class CompiledProgram:
    """A program ready to run.

    Called with every parameter it writes outputs in place and returns None; called with the inputs only it allocates
    the outputs, zero-filled, and returns them. A program without output parameters returns what its entry returns.
    `stages` shows what became of it on the way; `artifact` can be kept, and is None on the interpreter.
    """

    def __init__(
        self,
        program: Program,
        platform: str,
        runner: Runner,
        stages: Mapping[str, Callable[[], str]] | None = None,
        artifact: Artifact | None = None,
        native: NativeProgram | None = None,
    ) -> None:
        self.program = program
        self.platform = platform
        self.stages = Stages(stages or {})
        self.artifact = artifact
        self.native = native
        self._runner = runner
        self._written: dict[str, tuple[ParamDirection, ...]] = {}

    @property
    def param_names(self) -> list[str]:
        """The entry's parameters, in order."""
        return [p.name_hint for p in entry_of(self.program).params]

    @property
    def output_indices(self) -> list[int]:
        """The positions of parameters that are only written."""
        return extract_param_infos(self.program)[1]

    @property
    def has_return(self) -> bool:
        """Whether the entry returns anything."""
        return bool(entry_of(self.program).return_types)

    def __call__(self, *args: Any) -> Any:
        """Run the program's only entry."""
        if len(self.program.entries) > 1:
            names = ", ".join(f.name for f in self.program.entries)
            raise TypeError(f"program {self.program.name} has several entries: call one of {names} by name")
        return self._start(entry_of(self.program), args)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Return one entry of a program that has several."""
        entry = next((f for f in self.program.entries if f.name == name), None)
        if entry is None:
            names = ", ".join(f.name for f in self.program.entries)
            raise KeyError(f"program {self.program.name} has no entry {name!r}; it has {names}")
        return lambda *args: self._start(entry, args)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return one entry of a program that has several, as an attribute."""
        if not name.startswith("_") and any(f.name == name for f in self.program.entries):
            return self[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"CompiledProgram({self.program.name!r}, platform={self.platform!r})"

    def _start(self, entry: Function, args: tuple[Any, ...]) -> Any:
        outputs = [i for i, d in enumerate(entry.param_directions) if d is ParamDirection.Out]
        bound = bind(entry, self._directions(entry), args)
        returned = self._runner(entry.name, bound.values)
        if outputs and len(args) == len(entry.params):
            return None
        results = [_returned(r, bound) for r in returned] or [bound.given[i] for i in outputs]
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def directions(self) -> tuple[ParamDirection, ...]:
        """Return what the only entry really does with each of its parameters."""
        return self._directions(entry_of(self.program))

    def _directions(self, entry: Function) -> tuple[ParamDirection, ...]:
        """Return which parameters an entry really writes, worked out once."""
        if entry.name not in self._written:
            self._written[entry.name] = actual_directions(self.program, entry)
        return self._written[entry.name]


def _returned(value: Any, bound: Arguments) -> Any:
    """Return a result as the caller knows it: their own array where it is one, a new one otherwise."""
    if not isinstance(value, Region):
        return value
    for original, region in zip(bound.given, bound.values, strict=True):
        if isinstance(region, Region) and region.data is value.data:
            return original
    return bound.buffer.wrap(value.data)
