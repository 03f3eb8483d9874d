"""Compiled programs: what `ir.compile` returns, called with tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Call, Const, Symbol
from tilewright.core.program import Function, Program
from tilewright.core.region import Region
from tilewright.core.types import Extent, ScalarType, Shape, TensorType, Type, show_shape
from tilewright.dtypes import BOOL, DataType, round_scalar
from tilewright.runtime.buffers import Buffer, NumpyBuffer, buffer_of, region_of

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
    """

    def __init__(
        self, program: Program, platform: str, runner: Runner, stages: Mapping[str, Callable[[], str]] | None = None
    ) -> None:
        self.program = program
        self.platform = platform
        self.stages = Stages(stages or {})
        self._runner = runner

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
        total, inputs = len(entry.params), len(entry.params) - len(outputs)
        if len(args) not in (total, inputs):
            raise TypeError(
                f"CompiledProgram expects {total} (in-place) or {inputs} (return) arguments, got {len(args)}"
            )
        in_place = len(args) == total and bool(outputs)
        given = list(args) if len(args) == total else _with_gaps(args, outputs)
        buffer = next((b for b in map(buffer_of, args) if b is not None), NumpyBuffer())
        extents = _extents(entry, given)
        for position in outputs if len(args) != total else ():
            type_ = entry.params[position].type
            assert isinstance(type_, TensorType)
            given[position] = buffer.zeros(_shape(type_.shape, extents), type_.dtype)
        values = [_checked(p.name_hint, p.type, value, extents) for p, value in zip(entry.params, given, strict=True)]
        for param, direction, value in zip(entry.params, entry.param_directions, values, strict=True):
            if direction is not ParamDirection.In and isinstance(value, Region) and not value.data.flags.writeable:
                raise ValueError(f"`{param.name_hint}` is written, but the array given is read-only")
        returned = self._runner(entry.name, values)
        if in_place:
            return None
        results = [_returned(r, given, values, buffer) for r in returned] or [given[i] for i in outputs]
        return results[0] if len(results) == 1 else tuple(results) if results else None


def _with_gaps(args: Sequence[Any], outputs: Sequence[int]) -> list[Any]:
    remaining = iter(args)
    return [None if i in outputs else next(remaining) for i in range(len(args) + len(outputs))]


def _extents(entry: Function, given: Sequence[Any]) -> dict[str, int]:
    """Return the value of each symbol, from the first argument that carries it."""
    found: dict[str, int] = {}
    for param, value in zip(entry.params, given, strict=True):
        if value is None or not isinstance(param.type, TensorType):
            continue
        shape = tuple(getattr(value, "shape", ()))
        if len(shape) == len(param.type.shape):
            for extent, have in zip(param.type.shape, shape, strict=True):
                if isinstance(extent, Symbol):
                    found.setdefault(extent.name, int(have))
    return found


def _shape(shape: Shape, extents: dict[str, int]) -> tuple[int, ...]:
    """Return a shape with its symbols replaced; ValueError when an input does not decide one."""
    return tuple(_extent(extent, extents) for extent in shape)


def _extent(extent: Extent, extents: dict[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    if isinstance(extent, Symbol) and extent.name in extents:
        return extents[extent.name]
    if isinstance(extent, Const):
        return int(extent.value)
    if isinstance(extent, Call):
        spec = extent.op.spec
        values = [_extent(arg, extents) for arg in extent.args]
        return spec.evaluate(extent.type, **dict(zip((p.name for p in spec.operands), values, strict=True)))
    raise ValueError(f"no input decides the extent {extent}: pass the output tensor yourself")


def _checked(name: str, type_: Type, value: Any, extents: dict[str, int]) -> Any:
    """Return an argument as the program takes it; TypeError or ValueError naming the parameter otherwise."""
    if isinstance(type_, ScalarType):
        return _checked_scalar(name, type_.dtype, value)
    assert isinstance(type_, TensorType)
    region = region_of(value, name)
    if region.dtype != type_.dtype:
        raise TypeError(f"`{name}` expects dtype {type_.dtype}, got {region.dtype}")
    if region.data.ndim != len(type_.shape):
        raise ValueError(f"`{name}` expects rank {len(type_.shape)}, got {region.data.ndim}")
    wanted = _shape(type_.shape, extents)
    if region.data.shape != wanted:
        declared = "" if wanted == type_.shape else f" = {list(wanted)}"
        raise ValueError(f"`{name}` expects shape {show_shape(type_.shape)}{declared}, got {list(region.data.shape)}")
    return region


def _checked_scalar(name: str, dtype: DataType, value: Any) -> int | float | bool:
    if buffer_of(value) is not None and getattr(value, "ndim", 1) > 0:
        raise TypeError(f"`{name}` is a scalar, got a tensor")
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, (bool, int, float)) or (isinstance(value, bool) != (dtype == BOOL)):
        raise TypeError(f"`{name}` is a scalar of {dtype}, got {type(value).__name__}")
    if dtype.is_int() and (isinstance(value, float) or not dtype.limits[0] <= value <= dtype.limits[1]):
        raise TypeError(f"`{name}` is a scalar of {dtype}, which cannot hold {value}")
    return round_scalar(value, dtype)


def _returned(value: Any, given: Sequence[Any], values: Sequence[Any], buffer: Buffer) -> Any:
    """Return a result as the caller knows it: their own array where it is one, a new one otherwise."""
    if not isinstance(value, Region):
        return value
    for original, region in zip(given, values, strict=True):
        if isinstance(region, Region) and region.data is value.data:
            return original
    return buffer.wrap(value.data)
