"""Python's own functions on running values: `min`, `max`, `sum`, `abs` and `len` of numbers, tiles and tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.core.build import scalar
from tilewright.core.expr import Expr, constant
from tilewright.core.numbers import as_constant, as_number
from tilewright.core.operands import is_shaped
from tilewright.core.types import ScalarType, TensorType, TileType
from tilewright.errors import OperandError
from tilewright.frontend.arguments import Arguments
from tilewright.frontend.operand_types import of_one_kind
from tilewright.frontend.operators import apply
from tilewright.frontend.properties import extent_value
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS


def on_running(t: Translator, callee: Any, given: Arguments, node: ast.Call) -> Value:
    """Return what a function of Python's makes of running values, None where all is known or it makes nothing."""
    handler = next((handler for function, handler in _HANDLERS.items() if callee is function), None)
    values = (*given.args, *given.kwargs.values())
    if handler is None or not given.args:
        return None
    inside = [part for value in values for part in sequence(value)]
    return handler(t, given, node) if any(map(t.computes, inside)) else None


def _extreme(name: str) -> Callable[[Translator, Arguments, ast.Call], Value]:
    def handler(t: Translator, given: Arguments, node: ast.Call) -> Value:
        values = _several(t, given, node, f"pl.{name}(x, axis=-1) folds an axis of a tile, pl.{name}(x) all of it")
        if given.kwargs or any(map(is_shaped, values)):
            help = f"pl.{name}imum(a, b) takes tiles, element by element"
            raise t.error(OperandError, node, f"`{name}` compares numbers", help=help)
        result, *rest = values
        for value in rest:
            lhs, rhs = (result, value) if t.frame is None else of_one_kind(result, value)
            bound = {"lhs": as_constant(lhs), "rhs": as_constant(rhs)}
            result = as_number(apply(t, OPS[f"scalar.{name}"].spec, bound, node, {}))
        return result

    return handler


def _sum(t: Translator, given: Arguments, node: ast.Call) -> Value:
    """Return the sum of several values, one after the other; a list of tiles has one, too."""
    addition = ast.copy_location(ast.BinOp(node.args[0], ast.Add(), node.args[0]), node)
    listed = Arguments(given.args[:1], {}, given.nodes, {})
    parts = _several(t, listed, node, "pl.sum(x, axis=0) adds the rows of a tile, pl.sum(x) all elements")
    first, *rest = (*given.args[1:], *given.kwargs.values(), *parts)
    for value in rest:
        first = t.placed(t.binary(addition.op, first, value, addition), node)
    return first


def _several(t: Translator, given: Arguments, node: ast.Call, help: str) -> Sequence[Value]:
    """Return the values that a function is given, by position or as one sequence; one value alone has no parts."""
    first, *others = given.args
    if others:
        return given.args
    if isinstance(first, Expr):
        message = f"`{ast.unparse(node.func)}` goes through a list or tuple, got {first.type}"
        raise t.error(OperandError, node, message, help=help)
    return sequence(first)


def _absolute(t: Translator, given: Arguments, node: ast.Call) -> Value:
    (value,) = given.args
    if is_shaped(value):
        return apply(t, OPS["tile.abs"].spec, {"x": value}, node, {"x": node.args[0]})
    number: Any = as_constant(value)
    if isinstance(number.type, ScalarType) and number.type.dtype.is_unsigned_int():
        return value
    return as_number(scalar("max", number, scalar("sub", constant(0, number.type.dtype), number)))


def _length(t: Translator, given: Arguments, node: ast.Call) -> Value:
    (value,) = given.args
    type_ = value.type if is_shaped(value) else None
    if not isinstance(type_, TensorType | TileType):
        return None
    if not type_.shape:
        raise t.error(OperandError, node, "a value without axes has no length", help="x.numel() is 1")
    return extent_value(t, value, 0, node)


_HANDLERS: Mapping[Any, Callable[[Translator, Arguments, ast.Call], Value]] = {
    abs: _absolute,
    len: _length,
    max: _extreme("max"),
    min: _extreme("min"),
    sum: _sum,
}
