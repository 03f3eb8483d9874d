"""Signatures: what a call of a function gives, in the caller's own extents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import rebuild
from tilewright.core.expr import Call, Expr, Symbol
from tilewright.core.extents import as_extent, as_scalar
from tilewright.core.program import Function
from tilewright.core.solving import GIVEN
from tilewright.core.types import Extent, Shape, TensorType, TupleType, Type


def result_type(function: Function, args: Sequence[Expr]) -> Type:
    """Return the type of calling `function` with `args`: its symbols become the extents the arguments have."""
    known = symbol_extents(function, args)
    types = tuple(substituted(type_, known) for type_ in function.return_types)
    return types[0] if len(types) == 1 else TupleType(types)


def symbol_extents(function: Function, args: Sequence[Expr]) -> dict[str, Extent]:
    """Return what each symbol of a function is worth at one call."""

    def extent(position: int, axis: int) -> Extent:
        type_ = args[position].type
        return type_.shape[axis] if isinstance(type_, TensorType) else None

    return symbols_told(function, extent)


def symbols_told(function: Function, extent: Callable[[int, int], Extent]) -> dict[str, Extent]:
    """Return what each symbol of a function is worth where axes of its arguments have some extents."""
    found = {name: extent(position, axis) for name, (position, axis) in function.symbols.items()}
    for name, told in function.solutions.items():
        known = {**found, GIVEN.name: extent(told.position, told.axis)}
        found[name] = _extent(as_extent(told.value), known)
    return found


def substituted(type_: Type, known: Mapping[str, Extent]) -> Type:
    """Return a tensor type with symbols replaced; other types stay as they are."""
    if not isinstance(type_, TensorType):
        return type_
    return replace(type_, shape=_shape(type_.shape, known), valid=_shape(type_.valid, known))


def _shape(shape: Shape, known: Mapping[str, Extent]) -> Shape:
    return tuple(_extent(extent, known) for extent in shape)


def _extent(extent: Extent, known: Mapping[str, Extent]) -> Extent:
    """Return an extent with symbols replaced; one unknown makes the whole unknown."""
    if isinstance(extent, Symbol):
        return known.get(extent.name, extent)
    if not isinstance(extent, Call):
        return extent
    args = [_extent(as_extent(arg), known) for arg in extent.args]
    if any(arg is None for arg in args):
        return None
    return as_extent(rebuild(extent, [as_scalar(arg) for arg in args]))
