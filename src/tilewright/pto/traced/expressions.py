"""Expressions: names, numbers, operators, attributes and items."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from tilewright.errors import (
    KernelError,
    StaticEvaluationError,
    SubscriptError,
    UnknownAttributeError,
    UnknownOpError,
    UnsupportedFeatureError,
)
from tilewright.frontend.expressions import BINARY, COMPARE, UNARY
from tilewright.frontend.names import nearest
from tilewright.frontend.value_keys import is_instance, is_plain
from tilewright.pto.module import Value
from tilewright.pto.traced import arithmetic
from tilewright.pto.traced.attributes import Method, attribute_of
from tilewright.pto.traced.namespace import Operations, operations
from tilewright.pto.traced.scalars import as_type
from tilewright.pto.traced.tracer import Tracer, expression
from tilewright.pto.traced.values import describe, is_runtime
from tilewright.pto.types import I1

_MEMBERSHIP: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, container: operator.contains(container, item),
    ast.NotIn: lambda item, container: not operator.contains(container, item),
}
"""The comparisons that only values of Python's have."""


@expression(ast.Constant)
def _constant(t: Tracer, node: ast.Constant) -> Any:
    return node.value


@expression(ast.Name)
def _name(t: Tracer, node: ast.Name) -> Any:
    return t.lookup(node)


@expression(ast.Tuple)
def _tuple(t: Tracer, node: ast.Tuple) -> tuple[Any, ...]:
    return tuple(t.evaluate(element) for element in node.elts)


@expression(ast.List)
def _list(t: Tracer, node: ast.List) -> tuple[Any, ...]:
    return tuple(t.evaluate(element) for element in node.elts)


@expression(ast.BinOp)
def _binary(t: Tracer, node: ast.BinOp) -> Any:
    lhs, rhs = t.evaluate(node.left), t.evaluate(node.right)
    return combined(t, node.op, lhs, rhs, node)


def combined(t: Tracer, op: ast.operator, lhs: object, rhs: object, node: ast.BinOp | ast.AugAssign) -> Any:
    """Return what an operator makes of two values, by Python where both are known."""
    if isinstance(lhs, Value) or isinstance(rhs, Value):
        return arithmetic.binary(t, op, lhs, rhs, node)
    return known(t, node, lambda: BINARY[type(op)][0](lhs, rhs), lhs, rhs)


@expression(ast.UnaryOp)
def _unary(t: Tracer, node: ast.UnaryOp) -> Any:
    value = t.evaluate(node.operand)
    if not isinstance(value, Value):
        return known(t, node, lambda: UNARY[type(node.op)][0](value), value)
    if isinstance(node.op, ast.USub):
        return arithmetic.negative(t, value, node)
    if isinstance(node.op, ast.UAdd):
        return value
    return arithmetic.inverted(t, as_type(t, value, I1, node) if isinstance(node.op, ast.Not) else value, node)


@expression(ast.Compare)
def _compare(t: Tracer, node: ast.Compare) -> Any:
    result, lhs = True, t.evaluate(node.left)
    for op, right in zip(node.ops, node.comparators, strict=True):
        rhs = t.evaluate(right)
        result = _both(t, result, _compared(t, op, lhs, rhs, node), node)
        lhs = rhs
    return result


def _compared(t: Tracer, op: ast.cmpop, lhs: object, rhs: object, node: ast.Compare) -> Any:
    if isinstance(op, (ast.Is, ast.IsNot)) and None in (lhs, rhs):
        return (lhs is rhs) == isinstance(op, ast.Is)
    if not is_runtime(lhs) and not is_runtime(rhs):
        meaning = _MEMBERSHIP.get(type(op)) or COMPARE[type(op)][0]
        return known(t, node, lambda: meaning(lhs, rhs), lhs, rhs)
    if isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        help = "compare with == and !=, joined with `or` and `and`"
        raise UnsupportedFeatureError(
            "`is` and `in` need values known at compile time", spans=[t.span(node)], help=help
        )
    return arithmetic.compare(t, op, lhs, rhs, node)


def _both(t: Tracer, lhs: Any, rhs: Any, node: ast.expr) -> Any:
    if not isinstance(lhs, Value):
        return rhs if lhs else lhs
    return t.builder.value("arith.andi", [lhs, as_type(t, rhs, I1, node)], I1, t.span(node))


@expression(ast.BoolOp)
def _logical(t: Tracer, node: ast.BoolOp) -> Any:
    """Return `and` or `or`: of what is known as Python has it, of `i1` values by computing both sides."""
    is_and = isinstance(node.op, ast.And)
    result: Any = t.evaluate(node.values[0])
    for part in node.values[1:]:
        if not isinstance(result, Value):
            if bool(result) != is_and:
                return result
            result = t.evaluate(part)
            continue
        operands = [as_type(t, value, I1, where) for value, where in ((result, node), (t.evaluate(part), part))]
        result = t.builder.value("arith.andi" if is_and else "arith.ori", operands, I1, t.span(node))
    return result


@expression(ast.IfExp)
def _conditional(t: Tracer, node: ast.IfExp) -> Any:
    condition = t.evaluate(node.test)
    if not isinstance(condition, Value):
        return t.evaluate(node.body if condition else node.orelse)
    return arithmetic.select(t, condition, t.evaluate(node.body), t.evaluate(node.orelse), node)


@expression(ast.Attribute)
def _attribute(t: Tracer, node: ast.Attribute) -> Any:
    t.resolver.rest()
    owner = t.evaluate(node.value)
    if isinstance(owner, Value):
        return attribute_of(t, owner, node)
    try:
        return t.resolver.attribute(owner, node.attr)
    except AttributeError:
        raise _missing(t, owner, node) from None


def _missing(t: Tracer, owner: object, node: ast.Attribute) -> KernelError:
    name = ast.unparse(node.value)
    ops = operations() if isinstance(owner, ModuleType) and owner.__name__ == "tilewright.pto" else ()
    help = nearest(node.attr, [*dir(owner), *ops], f"{name}.")
    if isinstance(owner, (ModuleType, Operations)):
        help = help or f"dir({name}) lists what there is"
        return UnknownOpError(f"there is no `{name}.{node.attr}`", spans=[t.span(node)], help=help)
    return UnknownAttributeError(f"`{name}` has no attribute '{node.attr}'", spans=[t.span(node)], help=help)


@expression(ast.Subscript)
def _subscript(t: Tracer, node: ast.Subscript) -> Any:
    t.resolver.rest()
    owner = t.evaluate(node.value)
    if isinstance(owner, (Value, Method)):
        help = "pto.load_scalar(tile.as_ptr(), i) reads one element, pto.subview a window"
        raise SubscriptError(f"{describe(owner)} has no items", spans=[t.span(node)], help=help)
    key = t.evaluate(node.slice)
    if is_runtime(key):
        help = "write the cases as an `if`, or read the value from memory"
        message = "a Python container needs an index known at compile time"
        raise SubscriptError(message, spans=[t.span(node.slice)], help=help)
    return known(t, node, lambda: t.resolver.item(owner, key), key)


@expression(ast.Slice)
def _slice(t: Tracer, node: ast.Slice) -> slice:
    return slice(*(None if part is None else t.evaluate(part) for part in (node.lower, node.upper, node.step)))


@expression(ast.JoinedStr)
def _text(t: Tracer, node: ast.JoinedStr) -> str:
    parts = [t.evaluate(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
    return "".join(part if isinstance(part, str) else describe(part) for part in parts)


def known(t: Tracer, node: ast.expr | ast.AugAssign, compute: Callable[[], Any], *values: object) -> Any:
    """Return what Python makes of values it knows, with its refusal shown at the text."""
    for value in values:
        if is_instance(value) or not is_plain(value):
            message = f"`{ast.unparse(node)}` depends on all of an object of type {type(value).__name__}"
            help = "use the numbers it holds: its attributes and items are followed one by one"
            raise StaticEvaluationError(message, spans=[t.span(node)], help=help)
    try:
        return compute()
    except KernelError:
        raise
    except Exception as error:
        raise StaticEvaluationError(f"cannot evaluate `{ast.unparse(node)}`: {error}", spans=[t.span(node)]) from None
