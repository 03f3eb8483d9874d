"""The scalar module: `pto.scalar`, numbers read, written and computed with by name."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.errors import OperandError
from tilewright.pto.module import Value
from tilewright.pto.traced import arithmetic
from tilewright.pto.traced.arguments import Argument, Arguments, scalar_type
from tilewright.pto.traced.ops import emit, handles
from tilewright.pto.traced.scalars import as_integer, as_number, as_type, static_int
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import Lanes
from tilewright.pto.types import F32, INDEX, SCALARS, Opaque, Ptr, Scalar

_OPERATORS: dict[str, ast.operator] = {"addi": ast.Add(), "subi": ast.Sub(), "muli": ast.Mult()}


@handles("scalar.load", "scalar.store")
def _moved(t: Tracer, given: Arguments) -> Any:
    """Read or write a number, or several: as many as `contiguous` says, or as the value has."""
    place = 0 if given.word == "load" else 1
    if len(given.args) <= place:
        return emit(t, f"pto.{given.word}_scalar", given)  # which says what is missing
    target = given.args[place].value
    count = _count(t, given)
    is_array = isinstance(target, Value) and isinstance(target.type, Opaque)
    is_pair = isinstance(target, Value) and isinstance(target.type, Ptr) and target.type.element.nbytes < F32.nbytes
    if is_array or isinstance(given.args[0].value, Lanes) or count > 1 + is_pair:
        return _each(t, given, place, count, "local_array" if is_array else "")
    if isinstance(target, Value) and isinstance(target.type, Ptr):
        pair = _pair(t, given, target.type.element, count)
        if pair is not None:
            _see_pairs(t, given, place, target, Ptr(pair, target.type.space))
    return emit(t, f"pto.{given.word}_scalar", given)


def _count(t: Tracer, given: Arguments) -> int:
    """Return how many numbers a call moves."""
    said = given.kwargs.pop("contiguous", None)
    if said is not None:
        count = static_int(t, said.value, said.node, "`contiguous`")
        if count < 1:
            raise t.error(OperandError, said.node, f"`contiguous` is {count}", help="it is 1 or more")
        return count
    value = given.args[0].value
    return len(value) if isinstance(value, Lanes) else 1


def _each(t: Tracer, given: Arguments, place: int, count: int, array: str) -> Any:
    """Move numbers one by one, those of a local array or of memory, from an offset on."""
    held = given.args.pop(place + 1) if len(given.args) > place + 1 else given.kwargs.pop("offset", None)
    start, node = (held.value, held.node) if held is not None else (0, given.node)
    values = given.args[0].value if given.word == "store" else None
    lanes = values if isinstance(values, Lanes) else (values,) * count
    found = [_one(t, given, place, array, _after(t, start, at, node), lane) for at, lane in enumerate(lanes)]
    return None if given.word == "store" else found[0] if count == 1 else Lanes(found)


def _after(t: Tracer, start: object, by: int, node: ast.expr) -> object:
    """Return an offset some numbers further on."""
    if not isinstance(start, Value) or not by:
        return start if not by or not isinstance(start, int) else start + by
    return arithmetic.binary(t, ast.Add(), start, by, ast.copy_location(ast.BinOp(node, ast.Add(), node), node))


def _one(t: Tracer, given: Arguments, place: int, array: str, at: object, value: object) -> Any:
    target, node = given.args[place], given.node
    index = Argument([at], node) if array else Argument(at, node)
    moved = [] if given.word == "load" else [Argument(value, node)]
    if array:
        name = "get" if given.word == "load" else "set"
        return emit(t, f"pto.{array}_{name}", Arguments(given.name, node, args=[target, index, *moved]))
    return emit(t, f"pto.{given.word}_scalar", Arguments(given.name, node, args=[*moved, target, index]))


@handles("Vec")
def _lanes(t: Tracer, given: Arguments) -> Lanes:
    """Return several numbers of a type, all of them one number, or zero."""
    bound = given.bind(t, "dtype", "size", optional=("init",))
    dtype, size = scalar_type(t, bound["dtype"]), static_int(t, bound["size"].value, bound["size"].node, "a size")
    init = bound.get("init")
    if size < 1:
        raise t.error(OperandError, bound["size"].node, f"a vector of {size} numbers", help="it has one at least")
    if init is None or init.value is None:
        number: object = 0.0 if dtype.is_float else 0
    else:
        number = init.value
    made = as_type(t, number, dtype, given.node)
    return Lanes([made] * size)


def _pair(t: Tracer, given: Arguments, element: Scalar, number: int) -> Scalar | None:
    """Return the type of pairs that a call moves, None where it moves single numbers."""
    value = given.args[0].value
    if isinstance(value, Value) and isinstance(value.type, Scalar) and value.type.is_packed and value.type != element:
        return value.type
    found = SCALARS.get(f"vector<{number}x{element}>")
    if number != 1 and found is None:
        message = f"there is no value of {number} numbers of {element}"
        raise t.error(OperandError, given.node, message, help="read two of f16 or bf16, or one")
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


@handles("tile.mrgsort", "tmrgsort")
def _merge_sorted(t: Tracer, given: Arguments) -> Any:
    """Merge blocks; their length stands before or behind the destination."""
    if len(given.args) == 3 and isinstance(given.args[1].value, Value) and _is_number(given.args[2].value):
        given.args[1], given.args[2] = given.args[2], given.args[1]
    return emit(t, "pto.tmrgsort", given)


def _is_number(value: object) -> bool:
    return isinstance(value.type, Scalar) if isinstance(value, Value) else isinstance(value, int)
