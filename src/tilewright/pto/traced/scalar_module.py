"""The scalar module: `pto.scalar`, numbers read, written and computed with by name."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.pto.module import Value
from tilewright.pto.traced import arithmetic
from tilewright.pto.traced.arguments import Arguments, scalar_type
from tilewright.pto.traced.ops import emit, handles
from tilewright.pto.traced.scalars import as_integer, as_number
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.types import INDEX

_OPERATORS: dict[str, ast.operator] = {"addi": ast.Add(), "subi": ast.Sub(), "muli": ast.Mult()}


@handles("scalar.load", "scalar.store")
def _moved(t: Tracer, given: Arguments) -> Any:
    return emit(t, f"pto.{given.word}_scalar", given)


@handles("scalar.addi", "scalar.subi", "scalar.muli")
def _computed(t: Tracer, given: Arguments) -> Value:
    bound = given.bind(t, "lhs", "rhs")
    lhs, rhs = bound["lhs"], bound["rhs"]
    node = ast.copy_location(ast.BinOp(lhs.node, _OPERATORS[given.word], rhs.node), given.node)
    return arithmetic.binary(t, node.op, as_number(t, lhs.value, lhs.node), rhs.value, node)


@handles("scalar.abs")
def _size(t: Tracer, given: Arguments) -> Value:
    """Return the larger of a number and its negative."""
    argument = given.bind(t, "value")["value"]
    value = as_number(t, argument.value, argument.node)
    node = ast.copy_location(ast.UnaryOp(ast.USub(), argument.node), given.node)
    return arithmetic.extreme(t, max, value, arithmetic.unary(t, node.op, value, node), given.node)


@handles("scalar.index_cast")
def _index_cast(t: Tracer, given: Arguments) -> Value:
    """Return an integer as an `index`, or as the type that comes before it."""
    bound = given.bind(t, "value") if len(given.args) < 2 else given.bind(t, "dtype", "value")
    wanted = scalar_type(t, bound["dtype"]) if "dtype" in bound else INDEX
    return as_integer(t, bound["value"].value, wanted, bound["value"].node)
