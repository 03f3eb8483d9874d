"""Predicates: the comparison of one tensor element that decides whether a task runs."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilewright.core.expr import Call, Const, Expr, Submit, TupleGetItem, Var
from tilewright.core.types import ScalarType, TensorType
from tilewright.errors import DirectiveError, OperandError
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS

_FORM = "predicate=(flags[0] > 0)"


def predicate(t: Translator, node: ast.expr | None, deps: Sequence[Expr]) -> Expr | None:
    """Return what decides whether a task runs, None for a task that always does."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], _ORDERS):
        message = f"predicate= must be a single comparison, got `{ast.unparse(node)}`"
        raise t.error(DirectiveError, node, message, help=_FORM)
    sides = node.left, node.comparators[0]
    values = [None if isinstance(side, ast.Subscript) else t.operand(side) for side in sides]
    numbers = [isinstance(value, Const) or type(value) is int for value in values]
    if numbers.count(True) != 1:
        message = f"predicate= must compare one tensor element with an integer literal, got `{ast.unparse(node)}`"
        raise t.error(DirectiveError, node, message, help=_FORM)
    where = numbers.index(False)
    values[where] = element = _element(t, values[where], sides[where])
    _check_known(t, element, deps, sides[where])
    decided = t.compare(node.ops[0], values[0], values[1], node)
    assert isinstance(decided, Expr)
    return decided


_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def _element(t: Translator, value: Value, node: ast.expr) -> Var:
    """Return the element that one side of a predicate names, read now."""
    if isinstance(node, ast.Subscript):
        _check_indices(t, node)
        value = t.operand(node)
    if not isinstance(value, Var) or _tensor_of(t, value) is None:
        message = f"predicate= must compare one tensor element with an integer literal, got `{ast.unparse(node)}`"
        raise t.error(DirectiveError, node, message, help=_FORM)
    assert isinstance(value.type, ScalarType)
    if not value.type.dtype.is_signed_int():
        message = f"predicate= compares elements of signed integers, got {value.type.dtype}"
        raise t.error(OperandError, node, message, help="keep flags in a tensor of pl.INT32")
    return value


def _check_indices(t: Translator, node: ast.Subscript) -> None:
    owner = t.operand(node.value)
    if not isinstance(owner, Expr) or not isinstance(owner.type, TensorType):
        message = f"predicate= reads an element of a tensor, got {t.describe(owner)}"
        raise t.error(OperandError, node.value, message, help=_FORM)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(parts) != len(owner.type.shape):
        message = f"predicate= reads one element of {owner.type}, which takes {len(owner.type.shape)} indices"
        raise t.error(OperandError, node.slice, message, help="give each axis one index")
    for part in parts:
        index = None if isinstance(part, ast.Slice) else t.operand(part)
        number = index.value if isinstance(index, Const) else index
        is_scalar = isinstance(index, Expr) and isinstance(index.type, ScalarType) and index.type.dtype.is_int()
        if type(number) is not int and not is_scalar:
            message = f"an index in predicate= must be an integer, got `{ast.unparse(part)}`"
            raise t.error(OperandError, part, message, help=_FORM)
        if isinstance(number, int) and number < 0:
            message = f"an index in predicate= must be non-negative, got {number}"
            raise t.error(OperandError, part, message, help="count from the front")


def _tensor_of(t: Translator, element: Var) -> Expr | None:
    """Return the tensor that a number was read from, or None."""
    value = t.assigned.get(element)
    return value.args[0] if isinstance(value, Call) and value.op is OPS["tensor.read"] else None


def _check_known(t: Translator, element: Var, deps: Sequence[Expr], node: ast.expr) -> None:
    """Raise where the task that makes an element is none that this one waits for."""
    made = _task_of(t, _tensor_of(t, element))
    if made is not None and all(_task_of(t, dep) is not made for dep in deps):
        message = f"the task that makes what `{ast.unparse(node)}` reads is not in deps="
        raise t.error(DirectiveError, node, message, help="add its task id to deps=[...]")


def _task_of(t: Translator, value: Expr | None) -> Expr | None:
    """Return the dispatch that gave a value, or None."""
    while isinstance(value, (Var, TupleGetItem)):
        if isinstance(value, TupleGetItem):
            value = value.value
        elif isinstance(made := t.assigned.get(value), Submit):
            return made
        else:
            value = made
    return None
