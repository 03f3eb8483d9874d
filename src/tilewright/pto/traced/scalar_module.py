"""The scalar module: `pto.scalar`, numbers read, written and computed with by name."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.errors import OperandError
from tilewright.pto.module import Value
from tilewright.pto.traced import arithmetic
from tilewright.pto.traced.arguments import Argument, Arguments, scalar_type
from tilewright.pto.traced.ops import emit, handles
from tilewright.pto.traced.scalars import as_integer, as_number, static_int
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.types import INDEX, SCALARS, Ptr, Scalar

_OPERATORS: dict[str, ast.operator] = {"addi": ast.Add(), "subi": ast.Sub(), "muli": ast.Mult()}


@handles("scalar.load", "scalar.store")
def _moved(t: Tracer, given: Arguments) -> Any:
    """Read or write a number, or a pair of them: as many as `contiguous` says, or as the value is."""
    place = 0 if given.word == "load" else 1
    pointer = given.args[place].value if len(given.args) > place else None
    if isinstance(pointer, Value) and isinstance(pointer.type, Ptr):
        pair = _pair(t, given, pointer.type.element)
        if pair is not None:
            _see_pairs(t, given, place, pointer, Ptr(pair, pointer.type.space))
    return emit(t, f"pto.{given.word}_scalar", given)


def _pair(t: Tracer, given: Arguments, element: Scalar) -> Scalar | None:
    """Return the type of pairs that a call moves, None where it moves single numbers."""
    count, value = given.kwargs.pop("contiguous", None), given.args[0].value
    if isinstance(value, Value) and isinstance(value.type, Scalar) and value.type.is_packed and value.type != element:
        return value.type
    number = 1 if count is None else static_int(t, count.value, count.node, "`contiguous`")
    found = SCALARS.get(f"vector<{number}x{element}>")
    if number != 1 and found is None:
        message = f"there is no value of {number} numbers of {element}"
        raise t.error(OperandError, given.node, message, help="read two of f16, bf16 or f32, or one")
    return found


def _see_pairs(t: Tracer, given: Arguments, place: int, pointer: Value, pairs: Ptr) -> None:
    """Let a pointer, moved by an offset that counts numbers, be one to pairs."""
    span = t.span(given.node)
    if len(given.args) > place + 1:
        offset = given.args.pop(place + 1)
        by = as_integer(t, offset.value, INDEX, offset.node)
        pointer = t.writer.value("pto.addptr", [pointer, by], pointer.type, span)
    seen = t.writer.value("pto.castptr", [pointer], pairs, span)
    given.args[place] = Argument(seen, given.args[place].node)


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
