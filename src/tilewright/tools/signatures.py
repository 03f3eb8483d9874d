"""Signatures: how an op or a directive is written in a kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

import tilewright.language as pl
from tilewright.core.op import OpSpec, Parameter, Role, spec_of
from tilewright.core.types import ArrayType, ScalarType, TensorType, TileType, Type
from tilewright.dtypes import DataType

NAMESPACES = {"pl": pl, "pl.tile": pl.tile, "pl.tensor": pl.tensor, "pl.array": pl.array} | {
    "pl.system": pl.system,
    "pl.prefetch": pl.prefetch,
    "pld": pl.distributed,
}
"""Where ops can be found, the shortest spelling first."""

LEGEND = {
    "X": "a tensor or a tile, the same for every `X` of a signature",
    "Number": "a scalar that meets elements: `pl.Scalar`, `int` or `float`",
    "Index": "a scalar that counts or addresses: `pl.Scalar` or `int`",
    "Condition": "a scalar that is true or false: `pl.Scalar` or `bool`",
    "Extents": "one `Index` per axis, as a list",
}
"""What the names in signatures stand for, besides the types of `pl`."""

_ROLES = {Role.NUMBER: "Number", Role.INDEX: "Index", Role.CONDITION: "Condition", Role.EXTENTS: "Extents"}
_TYPES: dict[frozenset[type[Type]], str] = {
    frozenset((TileType, TensorType)): "X",
    frozenset((TensorType,)): "Tensor",
    frozenset((TileType,)): "Tile",
    frozenset((ArrayType,)): "Array",
}


def signatures(spec: OpSpec) -> dict[str, str]:
    """Return an op's spellings that take different operands, the one to use first, each with its signature."""
    return {name: signature(name, as_spelled) for as_spelled, (name, *_) in _spellings(spec).items()}


def other_names(spec: OpSpec) -> list[str]:
    """Return further names that mean exactly the same."""
    return [name for names in _spellings(spec).values() for name in names[1:]]


@cache
def _names() -> list[tuple[str, str, OpSpec]]:
    """Return every name of an op: where it is found, the name there, and what it takes."""
    return [
        (namespace, name, spelled)
        for namespace, module in NAMESPACES.items()
        for name, value in inspect.getmembers(module)
        if callable(value) and (spelled := spec_of(value)) is not None
    ]


def _spellings(spec: OpSpec) -> dict[OpSpec, list[str]]:
    found: dict[str, OpSpec] = {}
    for namespace, name, spelled in _names():
        if spelled.function is spec.function and f"pl.{name}" not in found:
            found[f"{namespace}.{name}"] = spelled
    return {each: [name for name, spelled in found.items() if spelled is each] for each in found.values()}


def signature(name: str, spec: OpSpec) -> str:
    """Return a call of an op with typed parameters, over several lines where one would be long."""
    declared = inspect.signature(spec.function)
    parameters = [_parameter(p, declared.parameters[p.name].annotation) for p in spec.parameters]
    return _layout(name, parameters, _annotation(declared.return_annotation))


def directive(name: str, function: Callable[..., Any]) -> str:
    """Return a call of a plain function of the language with typed parameters."""
    declared = inspect.signature(function)
    found = list(declared.parameters.values())
    shown = [_STARS.get(p.kind, "") + f"{p.name}: {_annotation(p.annotation)}{_given(p.default)}" for p in found]
    named = [p.kind is p.KEYWORD_ONLY for p in found]
    if any(named) and not any(p.kind is p.VAR_POSITIONAL for p in found):
        shown.insert(named.index(True), "*")
    return _layout(name, shown, _annotation(declared.return_annotation))


_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _layout(name: str, parameters: Sequence[str], result: str) -> str:
    line = f"{name}({', '.join(parameters)}) -> {result}"
    if len(line) <= 110:
        return line
    return "\n".join([f"{name}(", *(f"    {p}," for p in parameters), f") -> {result}"])


def _parameter(parameter: Parameter, annotation: Any) -> str:
    if not parameter.is_operand:
        return f"{parameter.name}: {_annotation(annotation)}{_given(parameter.default)}"
    optional = " | None" if parameter.default is None else ""
    return f"{parameter.name}: {_operand(parameter)}{optional}{_given(parameter.default)}"


def _operand(parameter: Parameter) -> str:
    value = _TYPES.get(frozenset(parameter.types) - {ScalarType}, "")
    return f"{value} | Number" if parameter.role is Role.EITHER else _ROLES.get(parameter.role, value)


def _annotation(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation.removeprefix("_").replace("| _", "| ")
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is ...:
        return "..."
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(map(_annotation, get_args(annotation)))
    name = getattr(annotation, "__name__", "") or str(annotation)
    members = get_args(annotation)
    return f"{name}[{', '.join(map(_annotation, members))}]" if members else name


def _given(default: object) -> str:
    """Return what a parameter is when it is left out, as the end of its declaration."""
    if default is inspect.Parameter.empty:
        return ""
    if isinstance(default, Enum):
        module = "pl" if hasattr(pl, type(default).__name__) else "pld"
        return f" = {module}.{type(default).__name__}.{default.name}"
    return f" = pl.{default.symbol}" if isinstance(default, DataType) else f" = {default!r}"


def kinds(spec: OpSpec) -> str:
    """Return what an op works on, in words: `tiles and tensors`."""
    words = [f"{kind.value}s" for kind in spec.kinds if kind.is_data]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
