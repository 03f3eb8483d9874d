"""Invocations: calls of the program's other functions, made in place or dispatched as tasks."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from tilewright.core.build import call, scalar
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Const, Expr, GlobalVar, Invoke, MakeTuple, Submit, TupleGetItem, Var, constant
from tilewright.core.extents import as_scalar
from tilewright.core.operands import bind
from tilewright.core.program import Function
from tilewright.core.signature import result_type, substituted, symbols_told
from tilewright.core.stmt import AssignStmt
from tilewright.core.types import Extent, ScalarType, TensorType, TupleType, Type
from tilewright.dtypes import BOOL, INDEX, INT64, DataType
from tilewright.errors import ArgumentCountError, DTypeMismatchError, OperandError, ParserTypeError, ShapeMismatchError
from tilewright.frontend.arguments import Arguments
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS


def invoke(t: Translator, function: Function, given: Arguments, node: ast.Call, *, completes: bool = False) -> Invoke:
    """Return the call of another function, its arguments checked against its parameters.

    One that `completes` has outputs made that the caller leaves out.
    """
    args = _bound(t, function, given, node, completes)
    return Invoke(GlobalVar(function.name), args, result_type(function, args), t.span(node))


def _bound(t: Translator, function: Function, given: Arguments, node: ast.Call, completes: bool) -> tuple[Expr, ...]:
    names = [p.name_hint for p in function.params]
    if unknown := [name for name in given.kwargs if name not in names]:
        message = f"`{function.name}` does not accept keyword argument '{unknown[0]}'"
        raise t.error(ArgumentCountError, given.keyword_nodes[unknown[0]], message, help=_signature(function))
    count = len(given.args) + len(given.kwargs)
    positional = _taken(function, len(given.args)) if completes and not given.kwargs else names
    values = dict(zip(positional, given.args, strict=False)) | dict(given.kwargs)
    optional = _outputs(function) if completes else ()
    left_out = [p for p in function.params if p.name_hint not in values]
    if count != len(values) or any(p not in optional for p in left_out):
        wanted = f"{len(names) - len(optional)}..{len(names)}" if optional else f"{len(names)}"
        message = f"`{function.name}` expects {wanted} argument(s), got {count}"
        raise t.error(ArgumentCountError, node, message, help=_signature(function))
    spans = dict(zip(positional, given.nodes, strict=False)) | dict(given.keyword_nodes)
    found = {
        p: _argument(t, function, p, values[p.name_hint], spans[p.name_hint])
        for p in function.params
        if p.name_hint in values
    }
    return tuple(found[p] if p in found else _made(t, function, p, found, node) for p in function.params)


def _outputs(function: Function) -> tuple[Var, ...]:
    """Return the parameters that a function writes."""
    pairs = zip(function.params, function.param_directions, strict=True)
    return tuple(param for param, direction in pairs if direction is not ParamDirection.In)


def _taken(function: Function, count: int) -> list[str]:
    """Return which parameters so many arguments are for: outputs that are only written are left out first."""
    names = [p.name_hint for p in function.params]
    pairs = list(zip(names, function.param_directions, strict=True))
    read = [name for name, direction in pairs if direction is not ParamDirection.Out]
    taken = [name for name, direction in pairs if direction is ParamDirection.In]
    return next((kept for kept in (names, read, taken) if len(kept) == count), names)


def _made(t: Translator, function: Function, param: Var, given: Mapping[Var, Expr], node: ast.Call) -> Expr:
    """Return a tensor for an output that a call leaves out."""
    assert isinstance(param.type, TensorType)
    known = symbols_told(function, lambda at, axis: _extent_of(given.get(function.params[at]), axis))
    type_ = substituted(param.type, known)
    assert isinstance(type_, TensorType)
    if None in type_.shape:
        message = f"no argument tells the extents of `{param.name_hint}` of `{function.name}`, {param.type}"
        raise t.error(ArgumentCountError, node, message, help="create it before the call, and pass it")
    shape = MakeTuple(tuple(as_scalar(extent) for extent in type_.shape))
    spec = OPS["tensor.create"].spec
    made = call(spec, bind(spec, (shape, type_.dtype), {"layout": type_.layout}), t.span(node))
    var = Var(param.name_hint, made.type, t.span(node))
    t.emit(AssignStmt(var, made, var.span))
    return var


def _extent_of(arg: Expr | None, axis: int) -> Extent:
    return arg.type.shape[axis] if arg is not None and isinstance(arg.type, TensorType) else None


def _signature(function: Function) -> str:
    return f"{function.name}({', '.join(f'{p.name_hint}: {p.type}' for p in function.params)})"


def _argument(t: Translator, function: Function, param: Any, value: Value, node: ast.expr) -> Expr:
    number = value.value if isinstance(value, Const) else value
    if isinstance(number, (bool, int, float)) and isinstance(param.type, ScalarType):
        if _is_literal_of(number, param.type.dtype):
            return constant(bool(number) if param.type.dtype == BOOL else number, param.type.dtype, t.span(node))
    arg = t.expr(value, node, f"`{param.name_hint}` of `{function.name}`")
    problem = fitting(param.type, arg.type)
    if problem:
        kind, help = _PROBLEMS.get(
            problem, (ShapeMismatchError, "pass a window of it, or give the parameter that shape")
        )
        message = f"`{param.name_hint}` of `{function.name}` is {param.type}, got {arg.type}: {problem}"
        notes = [f"`{param.name_hint}` is declared at {param.span}"] if param.span.is_known else ()
        raise t.error(kind, node, message, help=help, notes=notes)
    return as_parameter(arg, param.type)


def as_parameter(arg: Expr, param: Type) -> Expr:
    """Return an argument that fits a parameter as what it is there: numbers are converted, any but zero being true."""
    if not isinstance(param, ScalarType) or not isinstance(arg.type, ScalarType) or fits_as_it_is(param, arg.type):
        return arg
    if param.dtype == BOOL:
        return scalar("ne", arg, constant(0, arg.type.dtype), span=arg.span)
    bound = {"x": arg, "target_type": param.dtype, "mode": "none"}
    return call(OPS["scalar.cast"].spec, bound, arg.span)


def fits_as_it_is(param: ScalarType, arg: ScalarType) -> bool:
    """Return whether a number needs no conversion."""
    return param == arg or {param.dtype, arg.dtype} == {INDEX, INT64}


UNBOUND = "it must be a DistributedTensor (window-bound)"

_PROBLEMS: Mapping[str, tuple[type[ParserTypeError], str]] = {
    "the ranks differ": (ShapeMismatchError, "pl.reshape changes the number of axes"),
    "the element types differ": (DTypeMismatchError, "convert it with pl.cast, or change the parameter"),
    "the types differ": (DTypeMismatchError, "convert it with pl.cast, or change the parameter"),
    UNBOUND: (OperandError, "a host function makes windows: pld.window(buf, shape, dtype=...)"),
    "the kinds differ": (OperandError, "tensors, tiles and scalars are different kinds of values"),
}
"""The mistake behind each way an argument does not fit, and what to try; what is not here is a matter of shape."""


def _is_literal_of(number: int | float | bool, dtype: DataType) -> bool:
    """Return whether a number of the text stands for one of a parameter's kind."""
    return dtype.is_float() or ((dtype.is_int() or dtype == BOOL) and not isinstance(number, float))


def fitting(param: Type, arg: Type) -> str:
    """Return why an argument does not fit a parameter, or nothing."""
    if isinstance(param, TensorType) and isinstance(arg, TensorType):
        if len(param.shape) != len(arg.shape):
            return "the ranks differ"
        if param.dtype != arg.dtype:
            return "the element types differ"
        if param.is_window and not arg.is_window:
            return UNBOUND
        for axis, (want, have) in enumerate(zip(param.shape, arg.shape, strict=True)):
            if isinstance(want, int) and isinstance(have, int) and want != have:
                return f"axis {axis} differs"
        return ""
    if isinstance(param, ScalarType) and isinstance(arg, ScalarType):
        if fits_as_it_is(param, arg) or (arg.dtype.is_int() and (param.dtype.is_int() or param.dtype == BOOL)):
            return ""
        return "" if arg.dtype.is_float() and param.dtype.is_float() else "the types differ"
    if type(param) is not type(arg):
        return "the kinds differ"
    return "" if param == arg else "the types differ"


_PLACES: Mapping[str, str] = {
    "sort": "argsort(x) gives their places; pl.topk(x, k) gives both",
    "max": "argmax(x, axis=-1) gives their places",
    "min": "argmin(x, axis=-1) gives their places",
}
"""The ops that other libraries have give places, too, and how to have those here."""


def parts(t: Translator, value: Value, source: ast.expr, count: int) -> Value:
    """Return a multi-value result as a tuple of values, one variable each being emitted as it is used.

    Two names for a task share its results, whatever their number, and its id.
    """
    name = source.func.attr if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else ""
    if isinstance(value, Expr) and name in _PLACES and not isinstance(value.type, TupleType):
        message, help = f"pl.{name} gives the elements alone, {value.type}", f"pl.{_PLACES[name]}"
        raise t.error(OperandError, source, message, help=help)
    if not isinstance(value, Expr) or not isinstance(value.type, TupleType):
        return value
    whole = t.expr(value, source)
    found = tuple(TupleGetItem(whole, i, e, t.span(source)) for i, e in enumerate(value.type.elements))
    is_task = isinstance(value, Submit) and count == 2 and len(found) != 2
    return (found[:-1] or None, found[-1]) if is_task else found
