"""Dynamic axes: how `bind_dynamic`, annotations and helpers make them.

An axis becomes dynamic where it enters the program, so each of these asks for it there, and the function that has the
parameter starts again. What an inlined kernel names is its own affair: at one call its `M` is the extent of one tensor,
at the next that of another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from tilewright.core.annotations import DynVar
from tilewright.core.expr import Expr, Symbol
from tilewright.core.types import Extent, TensorType
from tilewright.errors import DynamicConflictError, OperandError, OutOfBoundsError, ShapeMismatchError
from tilewright.frontend.frames import Axis, BecomesDynamic, Frame
from tilewright.frontend.properties import BindDynamic, extent_value
from tilewright.frontend.signature import axis_of
from tilewright.frontend.translator import Translator
from tilewright.source import Span


def bind_dynamic(t: Translator, bound: BindDynamic, node: ast.Call) -> None:
    """Make the axis of a parameter that `x.bind_dynamic(axis, M)` names dynamic; types that are written out say so."""
    dim, var = _arguments(t, node)
    shape = bound.type.shape
    if not 0 <= dim < len(shape):
        assert isinstance(node.func, ast.Attribute)
        message = f"`{ast.unparse(node.func.value)}` has axes 0 to {len(shape) - 1}, not {dim}"
        raise t.error(OutOfBoundsError, node, message, help="name one of its axes, counted from 0")
    if t.frame is None:
        return
    if t.inlining:
        name_axes(t, t.dims, [(var, bound.owner, dim)], node)
    elif shape[dim] != Symbol(var):
        _name_axis(t, t.frame, bound, dim, var, t.span(node))


def _arguments(t: Translator, node: ast.Call) -> tuple[int, str]:
    names = dict(zip(("dim", "var"), node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
    values: dict[Any, Any] = {name: t.evaluate(value) for name, value in names.items()}
    dim, var = values.get("dim"), values.get("var")
    if set(values) != {"dim", "var"} or not isinstance(dim, int) or not isinstance(var, (DynVar, Symbol)):
        help = 'x.bind_dynamic(0, M), where M = pl.dynamic("M")'
        raise t.error(OperandError, node, "bind_dynamic takes an axis and a pl.dynamic name", help=help)
    return dim, var.name


def _name_axis(t: Translator, frame: Frame, bound: BindDynamic, dim: int, name: str, span: Span) -> None:
    """Start again with an axis that goes by `name`; DynamicConflictError where the function has named it already."""
    extent, owner = bound.type.shape[dim], _position(t, frame, bound.owner)
    axis = axis_of(extent, frame) or ((owner, dim) if owner is not None else None)
    if axis is None:
        message = f"axis {dim} is {extent}, which no argument of `{t.captured.node.name}` decides"
        raise OperandError(message, spans=[span], help="bind the axis of a parameter")
    known = frame.dynamic.get(axis)
    if known is not None and known.is_named:
        if owner is None or known.owner in (owner, None):
            message = f"axis {dim} is dynamic by two names: '{known.symbol}' and '{name}'"
            notes = [f"'{known.symbol}' at {known.span}"]
            raise DynamicConflictError(message, spans=[span], notes=notes, help="give one axis one pl.dynamic name")
        frame.disown(axis)
    raise BecomesDynamic(frame, [axis], name, is_named=True, span=span, owner=owner)


def _position(t: Translator, frame: Frame, owner: Expr) -> int | None:
    """Return which parameter of the function a tensor is, or None."""
    return frame.position(owner.name_hint) if id(owner) in t.fixed else None  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]


def name_axes(t: Translator, dims: Mapping[str, Any], named: Iterable[tuple[str, Expr, int]], node: ast.AST) -> None:
    """Let names of an inlined kernel stand for extents of its arguments, which become dynamic where they are static."""
    assert t.frame is not None and isinstance(dims, dict)
    for name, owner, dim in named:
        assert isinstance(owner.type, TensorType)
        extent = owner.type.shape[dim]
        axis = axis_of(extent, t.frame)
        if axis is not None:
            known = _axis_called(t.frame, dims.get(name))
            axes = [axis] if known is None else [known, axis]
            raise BecomesDynamic(t.frame, axes, name, is_named=False, span=t.span(node))
        value = dims.setdefault(name, extent_value(t, owner, dim, node))
        if isinstance(value, int) and isinstance(extent, int) and value != extent:
            raise t.error(ShapeMismatchError, node, f"'{name}' is {value}, and axis {dim} of {owner.type} is {extent}")


def _axis_called(frame: Frame, extent: Any) -> Axis | None:
    symbol = extent.name if isinstance(extent, Symbol) else None
    return next((axis for axis, known in frame.dynamic.items() if known.symbol == symbol), None)


def spread(t: Translator, wanted: Iterable[tuple[Extent, Extent]], span: Span) -> None:
    """Make axes of the caller's own parameters dynamic where a callee has them so; pairs of what each has."""
    groups: dict[str, list[Axis]] = {}
    for want, have in wanted:
        axis = axis_of(have, t.frame)
        if isinstance(want, Symbol) and axis is not None:
            groups.setdefault(want.name, []).append(axis)
    for symbol, axes in groups.items():
        assert t.frame is not None
        raise BecomesDynamic(t.frame, axes, symbol, is_named=False, span=span)
