"""Choices: `a if condition else b`, where only the running program knows the condition.

A number, a tile or a tensor is chosen by a branch of the program, so that the other side is not computed.
"""

from __future__ import annotations

import ast
from typing import Any

from tilewright.core.build import scalar
from tilewright.core.expr import Const, Expr, Var, constant
from tilewright.core.operands import is_shaped
from tilewright.core.stmt import IfStmt, SeqStmts, Stmt, YieldStmt
from tilewright.core.types import ScalarType, TensorType, TileType, Type, unplaced
from tilewright.dtypes import BOOL, objection
from tilewright.errors import ConditionError, KernelError, OperandError
from tilewright.frontend.branches import as_condition
from tilewright.frontend.derived import Writer
from tilewright.frontend.operand_types import as_scalar, of_one_kind
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Value


def select(t: Translator, condition: Value, node: ast.IfExp) -> Value:
    """Return one of two values, as a condition says that only the running program knows."""
    where = f"pl.where({', '.join(map(ast.unparse, (node.test, node.body, node.orelse)))})"
    if is_shaped(condition):
        message = f"a conditional expression chooses by one condition, got {condition.type}"
        raise t.error(ConditionError, node.test, message, help=f"choose element by element: {where}")
    decided = as_condition(t, condition, node.test)
    if isinstance(decided, (bool, Const)):
        return t.evaluate(node.body if (decided.value if isinstance(decided, Const) else decided) else node.orelse)
    (then, first), (other, second) = (_side(t, side) for side in (node.body, node.orelse))
    several = _paired(first, second)
    pairs = [_alike(t, *pair, node, where) for pair in several or [(first, second)]]
    chosen = tuple(Var("chosen", _joined(t, *pair, node), t.span(node)) for pair in pairs)
    t.given |= {id(var) for var in chosen}
    ends = [YieldStmt(tuple(pair[side] for pair in pairs), t.span(node)) for side in (0, 1)]
    t.emit(IfStmt(decided, SeqStmts((*then, ends[0])), SeqStmts((*other, ends[1])), chosen, t.span(node)))
    return chosen if several else chosen[0]


def _paired(first: Value, second: Value) -> list[tuple[Value, Value]]:
    """Return the parts of two tuples of one length, side by side; nothing for other values."""
    if not (isinstance(first, tuple) and isinstance(second, tuple)):
        return []
    sides = sequence(first), sequence(second)  # pyright: ignore[reportUnknownArgumentType]
    return list(zip(*sides, strict=True)) if len(sides[0]) == len(sides[1]) else []


def _joined(t: Translator, first: Expr, second: Expr, node: ast.IfExp) -> Type:
    joined = t.joined(unplaced(first.type), unplaced(second.type), t.span(node))
    if joined is None:
        raise _unlike(t, first.type, second.type, node, "make them alike, for example with pl.cast or the same shape")
    return joined


def for_all(t: Translator, bound: dict[str, Any], node: ast.AST) -> dict[str, Any]:
    """Return the arguments of `pl.where`, with one condition that is for all elements as a mask of one."""
    condition = bound.get("condition")
    is_one = isinstance(condition, bool) or (isinstance(condition, Expr) and condition.type == ScalarType(BOOL))
    if not is_one:
        return bound
    data = [bound[name].type for name in ("x", "y") if is_shaped(bound[name])]
    if not data:
        help = "write `a if condition else b` for numbers"
        raise t.error(OperandError, node, "pl.where chooses elements, and all of this is numbers", help=help)
    kind = "tile" if isinstance(data[0], TileType) else "tensor"
    return {
        **bound,
        "condition": Writer(t, node).named(Writer(t, node).do(f"{kind}.full", shape=(1,), dtype=BOOL, value=condition)),
    }


def _side(t: Translator, node: ast.expr) -> tuple[list[Stmt], Value]:
    """Return what one side gives, and the statements that make it."""
    outer, t.stmts = t.stmts, []
    t.scope.enter()
    value = t.operand(node)
    t.scope.leave()
    stmts, t.stmts = t.stmts, outer
    return stmts, value


def _alike(t: Translator, first: Value, second: Value, node: ast.IfExp, where: str) -> tuple[Expr, Expr]:
    """Return two values as expressions, numbers in a type that has room for both."""
    kinds = (ScalarType, TensorType, TileType)
    for value, side in ((first, node.body), (second, node.orelse)):
        if not isinstance(value, (bool, int, float)) and not isinstance(getattr(value, "type", None), kinds):
            message = f"a running condition chooses between numbers, tiles or tensors, got {t.describe(value)}"
            raise t.error(OperandError, side, message, help="use an `if` statement, or a condition that is known")
    left, right = t.expr(first, node), t.expr(second, node)
    if is_shaped(left) != is_shaped(right):
        raise _unlike(t, left.type, right.type, node, where)
    return (left, right) if left.type == right.type or is_shaped(left) else _met(t, left, right, node)


def _met(t: Translator, left: Expr, right: Expr, node: ast.IfExp) -> tuple[Expr, Expr]:
    """Return two numbers of one type: a known one takes that of one that is not, if it has room there."""
    if (number := _in_type_of(left, right)) is not None:
        return left, number
    if (number := _in_type_of(right, left)) is not None:
        return number, right
    if t.frame is not None:
        left, right = of_one_kind(left, right)
    try:
        met = scalar("max", left, right).type
    except KernelError:
        raise _unlike(t, left.type, right.type, node, "make them alike, for example with pl.cast") from None
    assert isinstance(met, ScalarType)
    return as_scalar(left, met.dtype), as_scalar(right, met.dtype)


def _in_type_of(value: Expr, number: Expr) -> Const | None:
    """Return a known number in the type of another; None where that is of another kind, or too small."""
    assert isinstance(value.type, ScalarType)
    dtype = value.type.dtype
    if not isinstance(number, Const) or (isinstance(value, Const) and not dtype.is_float()):
        return None
    is_kind = {bool: dtype == BOOL, float: dtype.is_float()}.get(type(number.value), dtype.is_float() or dtype.is_int())
    return constant(number.value, dtype, number.span) if is_kind and not objection(number.value, dtype) else None


def _unlike(t: Translator, first: object, second: object, node: ast.IfExp, help: str) -> OperandError:
    message = f"a running condition chooses between values of one type, got {first} and {second}"
    return t.error(OperandError, node, message, help=help)
