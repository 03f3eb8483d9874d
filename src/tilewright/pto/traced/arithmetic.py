"""Arithmetic: Python's operators on scalars, as `arith` ops.

The two sides have one type. A Python number takes the type of the other side; an integer meeting an `index` becomes
one, and of two integers the narrower becomes as the wider. `//` and `%` round down, as Python's do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.errors import DTypeMismatchError, OperandError, UnsupportedFeatureError
from tilewright.frontend.walk.known import known
from tilewright.pto.module import Value
from tilewright.pto.traced.first_lanes import first_lane
from tilewright.pto.traced.scalars import as_index, as_number, as_type, constant, convert
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import Lanes, describe, is_runtime
from tilewright.pto.types import I1, INDEX, Ptr, Scalar

_BINARY: Mapping[type[ast.operator], tuple[str, str, str, str]] = {
    ast.Add: ("+", "addi", "addi", "addf"),
    ast.Sub: ("-", "subi", "subi", "subf"),
    ast.Mult: ("*", "muli", "muli", "mulf"),
    ast.Div: ("/", "", "", "divf"),
    ast.FloorDiv: ("//", "floordivsi", "divui", ""),
    ast.Mod: ("%", "remsi", "remui", ""),
    ast.LShift: ("<<", "shli", "shli", ""),
    ast.RShift: (">>", "shrsi", "shrui", ""),
    ast.BitAnd: ("&", "andi", "andi", ""),
    ast.BitOr: ("|", "ori", "ori", ""),
    ast.BitXor: ("^", "xori", "xori", ""),
}
"""Each operator: its sign, and the op on signed, unsigned and floating-point numbers."""

_KEEPS_SIGN = frozenset(("addi", "muli", "floordivsi", "divui", "remsi", "remui", "shrsi", "shrui", "andi", "ori"))
"""The ops that give nothing negative for operands that are not."""

_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, str, str]] = {
    ast.Eq: ("eq", "eq", "oeq"),
    ast.NotEq: ("ne", "ne", "une"),
    ast.Lt: ("slt", "ult", "olt"),
    ast.LtE: ("sle", "ule", "ole"),
    ast.Gt: ("sgt", "ugt", "ogt"),
    ast.GtE: ("sge", "uge", "oge"),
}
"""Each comparison: its predicate on signed, unsigned and floating-point numbers."""


_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)

_INSTEAD = {
    **dict.fromkeys(("/", "//", "%"), "`/` divides floats and `//` integers; convert with pto.cast"),
    "**": "no type has powers: write the product, as in `x * x`",
}
"""What to write in place of an operator that a type lacks."""


def binary(t: Tracer, operator: ast.operator, lhs: object, rhs: object, node: ast.BinOp) -> Any:
    """Return an operator applied to scalars, one of them at least a value of the module, or to each of some lanes."""
    if isinstance(lhs, Lanes) or isinstance(rhs, Lanes):
        return Lanes(binary(t, operator, a, b, node) for a, b in _lane_by_lane(t, lhs, rhs, node))
    return _scalars(t, operator, lhs, rhs, node)


def _lane_by_lane(t: Tracer, lhs: object, rhs: object, node: ast.AST) -> list[tuple[object, object]]:
    """Return the operands of each lane: a number meets all of them."""
    counts = {len(side) for side in (lhs, rhs) if isinstance(side, Lanes)}
    if len(counts) > 1:
        message = f"the two sides have {' and '.join(map(str, sorted(counts)))} lanes"
        raise t.error(OperandError, node, message, help="make both as long")
    (count,) = counts
    left, right = (side if isinstance(side, Lanes) else (side,) * count for side in (lhs, rhs))
    return [*zip(left, right, strict=True)]


def _scalars(t: Tracer, operator: ast.operator, lhs: object, rhs: object, node: ast.BinOp) -> Value:
    sign, *_ = _BINARY.get(type(operator), ("**", ""))
    if isinstance(lhs, Value) and isinstance(lhs.type, Ptr):
        return _moved(t, operator, lhs, rhs, node)
    left, right, type_ = _paired(t, lhs, rhs, node, are_bits=isinstance(operator, _BITWISE))
    name = _choose(_BINARY.get(type(operator), ("", "", "", ""))[1:], type_)
    if not name or (type_ == I1 and name not in ("andi", "ori", "xori")):
        help = _INSTEAD.get(sign, "convert the operands with pto.cast")
        raise t.error(UnsupportedFeatureError, node, f"`{sign}` is not defined for {type_}", help=help)
    if name == "remsi" and not _are_never_negative(t, left, right):
        return _floor_remainder(t, left, right, node)
    return _integer(t, name, left, right, node)


def _choose(names: tuple[str, ...], type: Scalar) -> str:
    signed, unsigned, floating = names
    return floating if type.is_float else unsigned if type.name.startswith("ui") else signed


def _integer(t: Tracer, name: str, left: Value, right: Value, node: ast.AST) -> Value:
    result = t.writer.value(f"arith.{name}", [left, right], left.type, t.span(node))
    if name in _KEEPS_SIGN and _are_never_negative(t, left, right):
        t.writer.never_negative.add(result)
    return result


def _are_never_negative(t: Tracer, *values: Value) -> bool:
    return all(value in t.writer.never_negative for value in values)


def _floor_remainder(t: Tracer, left: Value, right: Value, node: ast.AST) -> Value:
    """Return `left % right` with the sign of `right`, which no op gives."""
    quotient = _integer(t, "floordivsi", left, right, node)
    return _integer(t, "subi", left, _integer(t, "muli", quotient, right, node), node)


def _moved(t: Tracer, operator: ast.operator, pointer: Value, offset: object, node: ast.BinOp) -> Value:
    """Return `pointer + offset`, counted in elements."""
    if not isinstance(operator, ast.Add):
        help = "pointers move with `+`, by a number of elements"
        raise t.error(UnsupportedFeatureError, node, f"{pointer.type} only adds", help=help)
    index = as_index(t, offset, node.right)
    return t.writer.value("pto.addptr", [pointer, index], pointer.type, t.span(node))


def _paired(
    t: Tracer, lhs: object, rhs: object, node: ast.AST, *, are_bits: bool = False
) -> tuple[Value, Value, Scalar]:
    """Return two operands of one type, and the type."""
    lhs, rhs = first_lane(t, lhs), first_lane(t, rhs)
    for value in (lhs, rhs):
        _check_scalar(t, value, node)
    types = [value.type for value in (lhs, rhs) if isinstance(value, Value)]
    common = _common([each for each in types if isinstance(each, Scalar)])
    left, right = (_as(t, value, common, node, are_bits) for value in (lhs, rhs))
    if left.type != right.type:
        help = "convert one of them with pto.cast"
        message = f"the two sides have different types, {left.type} and {right.type}"
        raise t.error(DTypeMismatchError, node, message, help=help)
    return left, right, common


def _as(t: Tracer, value: object, type: Scalar, node: ast.AST, are_bits: bool) -> Value:
    if not isinstance(value, Value):
        if isinstance(value, float) and type.is_integer:
            help = "convert the integer: pto.cast(..., pto.f32)"
            raise t.error(OperandError, node, f"{type} meets {value!r}, which is no {type}", help=help)
        if isinstance(value, bool) and type != I1:
            help = f"write {int(value)}, or pto.cast(..., pto.{type})"
            raise t.error(OperandError, node, f"{type} meets {value!r}, which is no number", help=help)
        return constant(t, value, type, node, are_bits=are_bits)
    have = value.type
    is_integer = isinstance(have, Scalar) and have.is_integer and have != I1 and type.is_integer and type != I1
    is_narrower = isinstance(have, Scalar) and (type == INDEX or have.bits < type.bits)
    return convert(t, value, type, t.span(node)) if is_integer and is_narrower else value


def _common(types: list[Scalar]) -> Scalar:
    """Return the type that both sides are brought to: `index`, or the widest integer; the first where neither is."""
    if any(not type.is_integer or type == I1 for type in types):
        return types[0]
    return INDEX if INDEX in types else max(types, key=lambda type: type.bits)


def _check_scalar(t: Tracer, value: object, node: ast.AST) -> None:
    is_scalar = isinstance(value.type, Scalar) if isinstance(value, Value) else isinstance(value, (bool, int, float))
    if not is_scalar:
        help = "tiles and vectors are computed with by ops: pto.tile.add, pto.vadd"
        raise t.error(OperandError, node, f"an operator needs scalars, got {describe(value)}", help=help)


def unary(t: Tracer, operator: ast.unaryop, value: Value, node: ast.UnaryOp) -> Value:
    """Return an operator applied to a scalar."""
    value = first_lane(t, value)
    if isinstance(operator, ast.UAdd):
        return value
    if isinstance(operator, ast.USub):
        return _negative(t, value, node)
    return _inverted(t, as_type(t, value, I1, node) if isinstance(operator, ast.Not) else value, node)


def _negative(t: Tracer, value: Value, node: ast.UnaryOp) -> Value:
    _check_scalar(t, value, node)
    assert isinstance(value.type, Scalar)
    if value.type.is_float:
        return t.writer.value("arith.negf", [value], value.type, t.span(node))
    return _integer(t, "subi", constant(t, 0, value.type, node), value, node)


def _inverted(t: Tracer, value: Value, node: ast.AST) -> Value:
    """Return an integer with every bit flipped; of an `i1`, its negation."""
    if not isinstance(value.type, Scalar) or not value.type.is_integer:
        help = "`not` and `~` take comparisons and integers"
        raise t.error(OperandError, node, f"{value.type} has no bits to flip", help=help)
    is_signed = value.type != I1 and not value.type.name.startswith("ui")
    ones = constant(t, -1 if is_signed else int(value.type.dtype.limits[1]), value.type, node)
    return t.writer.value("arith.xori", [value, ones], value.type, t.span(node))


def compare(t: Tracer, operator: ast.cmpop, lhs: object, rhs: object, node: ast.Compare) -> Value:
    """Return the `i1` that says whether a comparison holds."""
    if type(operator) not in _COMPARISONS:
        help = "compare with == and !=, joined with `or` and `and`"
        message = "`is` and `in` need values known at compile time"
        raise t.error(UnsupportedFeatureError, node, message, help=help)
    left, right, type_ = _paired(t, lhs, rhs, node)
    word = _choose(_COMPARISONS[type(operator)], type_)
    name = "arith.cmpf" if type_.is_float else "arith.cmpi"
    return t.writer.value(name, [left, right], I1, t.span(node), {"predicate": word})


def logical(t: Tracer, is_and: bool, lhs: object, rhs: object, node: ast.expr, where: ast.expr) -> object:
    """Return `and` or `or` of `i1` values, both of which are computed."""
    if not isinstance(lhs, Value):
        return rhs
    operands = as_type(t, lhs, I1, node), as_type(t, rhs, I1, where)
    return t.writer.value("arith.andi" if is_and else "arith.ori", operands, I1, t.span(node))


def extreme(t: Tracer, function: Callable[..., Any], lhs: object, rhs: object, node: ast.Call) -> Any:
    """Return the smaller or larger of two numbers; `function` is Python's `min` or `max`."""
    if not is_runtime((lhs, rhs)):
        return known(t, node, function, lhs, rhs)
    word = function.__name__
    left, right, type_ = _paired(t, lhs, rhs, node)
    name = _choose((f"{word}si", f"{word}ui", f"{word}imumf"), type_)
    result = t.writer.value(f"arith.{name}", [left, right], type_, t.span(node))
    both, either = _are_never_negative(t, left, right), any(_are_never_negative(t, v) for v in (left, right))
    if both or (either and word == "max"):
        t.writer.never_negative.add(result)
    return result


def select(t: Tracer, condition: Value, lhs: object, rhs: object, node: ast.AST) -> Value:
    """Return one of two scalars, as a condition says."""
    test = as_type(t, condition, I1, node)
    if isinstance(lhs, Value) or isinstance(rhs, Value):
        left, right, type_ = _paired(t, lhs, rhs, node)
    else:
        left, right = as_number(t, lhs, node), as_number(t, rhs, node)
        left, right, type_ = _paired(t, left, right, node)
    return t.writer.value("arith.select", [test, left, right], type_, t.span(node))
