"""Directives: the names of `pto` that are no op of their own."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ArgumentCountError, OperandError
from tilewright.pto.module import Value
from tilewright.pto.traced import arithmetic
from tilewright.pto.traced.arguments import Argument, Arguments, scalar_type
from tilewright.pto.traced.first_lanes import first_lane
from tilewright.pto.traced.inference import register
from tilewright.pto.traced.namespace import StaticRange
from tilewright.pto.traced.ops import emit, handles
from tilewright.pto.traced.scalars import as_integer, cast, static_int
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import natural
from tilewright.pto.types import INDEX, SCALARS, Scalar


@handles("const", "cast")
def _cast(t: Tracer, given: Arguments) -> Value:
    """Return a number as a value of the module; a constant is of its natural type unless one is given."""
    bound = given.bind(t, "value", "dtype") if given.word == "cast" else given.bind(t, "value", optional=("dtype",))
    value, wanted = bound["value"], bound.get("dtype")
    if wanted is not None:
        return cast(t, first_lane(t, value.value), scalar_type(t, wanted), value.node)
    known = isinstance(value.value, (bool, int, float))
    return cast(t, value.value, natural(value.value) if known else INDEX, value.node)


@handles("min", "max", "scalar.min", "scalar.max")
def _extreme(t: Tracer, given: Arguments) -> Any:
    bound = given.bind(t, "lhs", "rhs")
    function = min if given.word == "min" else max
    return arithmetic.extreme(t, function, bound["lhs"].value, bound["rhs"].value, given.node)


@handles("select", "scalar.select")
def _select(t: Tracer, given: Arguments) -> Any:
    bound = given.bind(t, "condition", "lhs", "rhs")
    condition = bound["condition"].value
    if not isinstance(condition, Value):
        return bound["lhs" if condition else "rhs"].value
    return arithmetic.select(t, condition, bound["lhs"].value, bound["rhs"].value, given.node)


@handles("make_mask")
def _make_mask(t: Tracer, given: Arguments) -> Any:
    """Return the mask of a pattern, or the mask of the lanes that a count leaves, with what is left after them."""
    bound = given.bind(t, "dtype", "value")
    width, value = scalar_type(t, bound["dtype"]).bits, bound["value"]
    if width not in (8, 16, 32):
        message = f"masks are of elements of 8, 16 or 32 bits, got {width}"
        raise t.error(OperandError, bound["dtype"].node, message, help="pto.f32, pto.f16 or pto.i8")
    if isinstance(value.value, str):
        return emit(t, f"pto.pset_b{width}", Arguments(given.name, given.node, args=[value]))
    lanes = Argument(as_integer(t, value.value, SCALARS["i32"], value.node), value.node)
    mask, rest = emit(t, f"pto.plt_b{width}", Arguments(given.name, given.node, args=[lanes]))
    given_type = value.value.type if isinstance(value.value, Value) else None
    return mask, as_integer(t, rest, given_type, value.node) if isinstance(given_type, Scalar) else rest


@handles("static_range")
def _static_range(t: Tracer, given: Arguments) -> StaticRange:
    numbers = [static_int(t, argument.value, argument.node, "a bound of pto.static_range") for argument in given.args]
    if not 1 <= len(numbers) <= 3 or given.kwargs or numbers[2:] == [0]:
        help = "pto.static_range(stop), (start, stop) or (start, stop, step)"
        message = f"`{given.name}` takes one to three numbers, the step not zero"
        raise t.error(ArgumentCountError, given.node, message, help=help)
    return StaticRange(range(*numbers))


@handles("bytewidth", "elements_per_vreg")
def _size(t: Tracer, given: Arguments) -> int:
    element = scalar_type(t, given.bind(t, "dtype")["dtype"])
    return element.nbytes if given.word == "bytewidth" else register(element).lanes


@handles("set_flag", "wait_flag")
def _flag(t: Tracer, given: Arguments) -> None:
    """Emit the flag, of an event that is known or of one that a value says."""
    word = given.word
    event = (
        given.kwargs.get("event_id") or given.kwargs.get("event") or (given.args[2] if len(given.args) > 2 else None)
    )
    if event is None:
        raise t.error(ArgumentCountError, given.node, f"`{given.name}` needs `event_id`", help="event_id=0 to 7")
    is_known = not isinstance(event.value, Value)
    emit(t, f"pto.{word}" if is_known else f"pto.{word}_dyn", given)
