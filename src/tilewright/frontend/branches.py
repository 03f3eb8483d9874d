"""Branches: conditions, and what comes out of the two sides of an `if`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial, reduce

from tilewright.core.build import scalar
from tilewright.core.endings import ends
from tilewright.core.expr import Call, Expr, Var, constant
from tilewright.core.extents import bounds
from tilewright.core.stmt import (
    IfStmt,
    SeqStmts,
    YieldStmt,
)
from tilewright.core.types import ScalarType, TensorType, TileType, unplaced
from tilewright.dtypes import BOOL
from tilewright.errors import ConditionError, YieldMismatchError
from tilewright.frontend.scope import Bindings
from tilewright.frontend.state import YieldFrame
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import check_plain
from tilewright.frontend.walk.walker import Value
from tilewright.source import Span


def condition(t: Translator, node: ast.expr) -> Expr | bool:
    """Return a branch or loop condition; ConditionError unless it is a bool."""
    if t.frame is not None and isinstance(node, ast.BoolOp):
        return _joined(isinstance(node.op, ast.And), [condition(t, value) for value in node.values])
    if t.frame is not None and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition(t, node.operand)
        return not inner if isinstance(inner, bool) else scalar("not_", inner)
    return as_condition(t, t.operand(node), node)


def _joined(is_and: bool, conditions: Sequence[Expr | bool]) -> Expr | bool:
    """Return `and` or `or` of conditions, of which those that are known decide, or do not matter."""
    if any(each is not is_and for each in conditions if isinstance(each, bool)):
        return not is_and
    running = [each for each in conditions if not isinstance(each, bool)]
    return reduce(partial(scalar, "and_" if is_and else "or_"), running) if running else is_and


def as_condition(t: Translator, value: Value, node: ast.expr) -> Expr | bool:
    """Return a value that decides something; ConditionError unless it is a bool, or in a jit kernel another number."""
    if isinstance(value, bool):
        return value
    if t.frame is not None and not isinstance(value, Expr):
        check_plain(t, node, value)
        return bool(value)
    if not isinstance(value, Expr) or value.type != ScalarType(BOOL):
        is_shaped = isinstance(value, Expr) and isinstance(value.type, (TensorType, TileType))
        if t.frame is not None and isinstance(value, Expr) and (asked := is_true(value)) is not None:
            return asked
        help = (
            "read one element with pl.read, or choose element by element: pl.where(x > 0, x, 0.0)" if is_shaped else ""
        )
        raise t.error(
            ConditionError, node, f"condition must be a Bool-typed scalar, got {t.describe(value)}", help=help
        )
    return value


def is_true(value: Expr) -> Expr | None:
    """Return whether a running number is another than zero, as Python asks; None for what is no number."""
    if not isinstance(value.type, ScalarType) or not (value.type.dtype.is_int() or value.type.dtype.is_float()):
        return None
    return scalar("ne", value, constant(0, value.type.dtype), span=value.span)


def branch(t: Translator, condition: Expr, node: ast.If) -> None:
    """Translate both sides of an `if`, and let the names after it stand for what they yield.

    A side that surely never runs, as its numbers show, is not looked at in a jit kernel: what it does may fit other
    arguments only.
    """
    if t.frame is not None and (known := _decided(condition)) is not None:
        taken(t, node.body if known else node.orelse)
        return
    then_body, then_frame, then_bound = _branch(t, node.body, {})
    else_body, else_frame, else_bound = _branch(t, node.orelse, then_bound)
    if ends(then_body):
        then_frame = else_frame
    names, return_vars = _merged_yields(t, node, then_frame, then_frame if ends(else_body) else else_frame)
    t.scope.merge(then_bound, else_bound, ends(then_body), ends(else_body))
    t.emit(IfStmt(condition, then_body, else_body if node.orelse else None, return_vars, t.span(node)))
    for name, var in zip(names, return_vars, strict=True):
        t.define(name, var)


def _decided(condition: Expr) -> bool | None:
    """Return what a condition on integers surely gives, however large they may be; None where it could be either."""
    if not isinstance(condition, Call):
        return None
    name = condition.op.spec.name
    if name == "not_":
        inner = _decided(condition.args[0])
        return None if inner is None else not inner
    if name in ("and_", "or_"):
        sides, deciding = [_decided(arg) for arg in condition.args], name == "or_"
        return deciding if deciding in sides else None if None in sides else not deciding
    return _compared(condition)


def _compared(condition: Call) -> bool | None:
    """Return what comparing two integers surely gives."""
    if condition.op.spec.symbol not in _ORDERINGS:
        return None
    lhs, rhs = (bounds(arg) for arg in condition.args)
    meaning = condition.op.spec.evaluate
    if lhs is None or rhs is None or meaning is None:
        return None
    found = {meaning(condition.type, low, high) for low in lhs for high in rhs}
    return found.pop() if len(found) == 1 else None


_ORDERINGS = ("<", "<=", ">", ">=")
"""The comparisons that are the same in between where they are the same at both ends."""


def taken(t: Translator, body: Sequence[ast.stmt]) -> None:
    """Translate the branch that a known condition takes, in place; what it yields goes by its names at once."""
    frame = YieldFrame()
    t.yields.append(frame)
    t.execute(body)
    t.yields.pop()
    if frame.names is None or not isinstance(last := t.stmts[-1], YieldStmt):
        return
    if len(frame.names) != len(last.values):
        raise unnamed_yield(last.span)
    t.stmts.pop()
    values = [t.settled(value, name, last.span) for name, value in zip(frame.names, last.values, strict=True)]
    for name, value in zip(frame.names, values, strict=True):
        t.hand_on(name, value, last.span)


def _branch(t: Translator, body: list[ast.stmt], sibling: Bindings) -> tuple[SeqStmts, YieldFrame, Bindings]:
    frame = YieldFrame()
    t.yields.append(frame)
    t.scope.enter(sibling)
    translated = t.block(body)
    t.yields.pop()
    return translated, frame, t.scope.leave()


def _merged_yields(
    t: Translator, node: ast.If, then: YieldFrame, other: YieldFrame
) -> tuple[tuple[str, ...], tuple[Var, ...]]:
    """Return the names and variables that two yielding branches define."""
    if then.names is None and other.names is None:
        return (), ()
    first = then if then.names is not None else other
    if first.names is not None and len(first.names) != len(first.types):
        raise unnamed_yield(first.span or t.span(node))
    if then.names is None or other.names is None:
        where = "else" if then.names is not None else "then"
        message = "both branches must yield, or neither"
        notes = [f"the {where} branch yields nothing"]
        help = f"end the {where} branch with a pl.yield_ of the same names"
        raise YieldMismatchError(message, spans=[first.span or t.span(node)], notes=notes, help=help)
    if then.names != other.names or len(then.types) != len(other.types):
        message = "both branches must yield the same names"
        notes = [f"then: {', '.join(then.names)}", f"else: {', '.join(other.names)}"]
        help = "the names after the `if` are those before the `=`: make them equal"
        raise YieldMismatchError(message, spans=[other.span or t.span(node)], notes=notes, help=help)
    variables: list[Var] = []
    for name, a, b in zip(then.names, then.types, other.types, strict=True):
        type_ = t.joined(unplaced(a), unplaced(b), other.span or t.span(node))
        if type_ is None:
            message = f"the branches yield different types for '{name}'"
            notes = [f"then: {a}", f"else: {b}"]
            help = "make them alike, for example with pl.cast or the same shape"
            raise YieldMismatchError(message, spans=[other.span or t.span(node)], notes=notes, help=help)
        variables.append(Var(name, type_, other.span or t.span(node)))
    return then.names, tuple(variables)


def unnamed_yield(span: Span) -> YieldMismatchError:
    """Return the error for yielded values that nothing after the block could refer to."""
    message = "what comes out needs names: this requires an assignment-form pl.yield_"
    return YieldMismatchError(message, spans=[span], help="r = pl.yield_(value)")
