"""Metadata: what a caller has to know of an entry, without its body."""

from __future__ import annotations

from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.core.types import Extent, ScalarType, Shape, TensorType, Type
from tilewright.dtypes import DataType
from tilewright.records import record


@record
class ParamInfo:
    """One parameter of an entry: `shape` is None for scalars, and -1 stands for a dynamic extent."""

    name: str
    direction: ParamDirection
    shape: tuple[int, ...] | None
    dtype: DataType
    dims: tuple[int | str, ...] | None = None
    """The shape with dynamic extents by name, as in `("M", 64)`, or as the formula that gives them."""


def param_infos(entry: Function) -> list[ParamInfo]:
    """Return an entry's parameters, in order."""
    return [_info(p.name_hint, d, p.type) for p, d in zip(entry.params, entry.param_directions, strict=True)]


def output_indices(entry: Function) -> list[int]:
    """Return the positions of parameters that are only written."""
    return [i for i, direction in enumerate(entry.param_directions) if direction is ParamDirection.Out]


def extract_param_infos(program: Program) -> tuple[list[ParamInfo], list[int], tuple[Type, ...]]:
    """Return the entry's parameters, the positions of its pure outputs, and its return types."""
    entry = entry_of(program)
    return param_infos(entry), output_indices(entry), entry.return_types


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


def dims(shape: Shape) -> tuple[int | str, ...]:
    """Return a shape with what is no number as its text: `M`, or `M * 2`; `?` where only the running program knows."""
    return tuple(map(_dim, shape))


def _dim(extent: Extent) -> int | str:
    return extent if isinstance(extent, int) else "?" if extent is None else str(extent)


def _info(name: str, direction: ParamDirection, type_: Type) -> ParamInfo:
    if isinstance(type_, TensorType):
        shape = tuple(e if isinstance(e, int) else -1 for e in type_.shape)
        return ParamInfo(name, direction, shape, type_.dtype, dims(type_.shape))
    assert isinstance(type_, ScalarType)
    return ParamInfo(name, direction, None, type_.dtype)
