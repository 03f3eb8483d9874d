"""SIMT by name: ids, memory, atomics, collectives and numbers of work items, in bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.errors import AttributeValueError, OperandError
from tilewright.pto.module import Attribute, Number, Op, Value
from tilewright.pto.text.free import ATTRIBUTES, OPERAND, WRITTEN
from tilewright.pto.traced.arguments import Argument, Arguments, scalar_type
from tilewright.pto.traced.launches import launched_by_name
from tilewright.pto.traced.ops import handles
from tilewright.pto.traced.scalars import as_index, as_integer, as_type, scalar_of, static_int
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe
from tilewright.pto.types import F32, I1, I64, SCALARS, Ptr, Scalar, Type

I32 = SCALARS["i32"]
_PLACES = [f"{what}_{axis}" for what in ("get_tid", "get_block_dim", "get_grid_dim", "get_block_idx") for axis in "xyz"]
_MASKS = [f"get_lanemask_{which}" for which in ("eq", "le", "lt", "ge", "gt")]
_TRIPLES = ("get_tid", "get_block_dim", "get_grid_dim")
_UNARY = ("absf", "sqrt", "exp", "log", "sin", "cos", "ceil", "floor", "rint", "round")
_ATOMICS = [f"atomic_{word}" for word in ("exch", "add", "sub", "min", "max", "and", "or", "xor")]

handles("simt_launch")(launched_by_name)


def emit_free(
    t: Tracer,
    given: Arguments,
    name: str,
    operands: Sequence[Value],
    result: Type | None = None,
    words: Sequence[str] = (),
    attributes: Mapping[str, Attribute] | None = None,
) -> Value | None:
    """Add an op of free text: operands, words, attributes, then a type for each."""
    span = t.span(given.node)
    shown = [*_listed([OPERAND] * len(operands)), *words, *([ATTRIBUTES] if attributes else [])]
    types = _listed([str(value.type) for value in operands])
    arrow = [] if result is None else ["->", str(result)] if operands else [":", str(result)]
    written = (*shown, *([":", *types] if types else []), *arrow)
    return _add(t, name, operands, result, {**({WRITTEN: written} if written else {}), **(attributes or {})}, span)


def _add(
    t: Tracer, name: str, operands: Sequence[Value], result: Type | None, attributes: Mapping[str, Attribute], span: Any
) -> Value | None:
    results = () if result is None else (Value("", result, span),)
    t.writer.emit(Op(f"pto.{name}", tuple(operands), (), attributes, results, span=span))
    return results[0] if results else None


def _listed(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in (",", word)][1:]


# who runs


@handles(*_PLACES, *_MASKS, "get_laneid", "get_veccoreid", "get_clock32", "get_clock64")
def _id(t: Tracer, given: Arguments) -> Value | None:
    given.bind(t)
    made = emit_free(t, given, given.word, (), I64 if given.word == "get_clock64" else I32)
    if made is not None and "lanemask" not in given.word:
        t.writer.never_negative.add(made)
    return made


@handles(*_TRIPLES)
def _ids(t: Tracer, given: Arguments) -> tuple[Value | None, ...]:
    """Return all three of them."""
    given.bind(t)
    return tuple(emit_free(t, given, f"{given.word}_{axis}", (), I32) for axis in "xyz")


@handles("syncthreads", "threadfence", "threadfence_block")
def _order(t: Tracer, given: Arguments) -> None:
    given.bind(t)
    emit_free(t, given, given.word, ())


# what is kept


@handles("keep")
def _keep(t: Tracer, given: Arguments) -> None:
    bound = given.bind(t, "value", "slot")
    value, _ = scalar_of(t, bound["value"].value, bound["value"].node)
    emit_free(t, given, "keep", [value], attributes=_slot(t, bound["slot"]))


@handles("resume")
def _resume(t: Tracer, given: Arguments) -> Value | None:
    bound = given.bind(t, "slot", "dtype")
    wanted = scalar_type(t, bound["dtype"])
    written = (ATTRIBUTES, ":", str(wanted))
    return _add(t, "resume", (), wanted, {WRITTEN: written, **_slot(t, bound["slot"])}, t.span(given.node))


def _slot(t: Tracer, argument: Argument) -> dict[str, Attribute]:
    return {"slot": Number(static_int(t, argument.value, argument.node, "a slot"), I64)}


# together


@handles("vote_all", "vote_any", "vote_uni", "vote_ballot")
def _vote(t: Tracer, given: Arguments) -> Value | None:
    flag = given.bind(t, "predicate")["predicate"]
    result = I32 if given.word == "vote_ballot" else I1
    return emit_free(t, given, given.word, [as_type(t, flag.value, I1, flag.node)], result)


@handles("shuffle_idx", "shuffle_up", "shuffle_down", "shuffle_bfly")
def _shuffle(t: Tracer, given: Arguments) -> Value | None:
    bound = given.bind(t, "value", "index", optional=("width",))
    value, by = _number(t, bound["value"]), as_integer(t, bound["index"].value, I32, bound["index"].node)
    width = bound.get("width")
    number = 32 if width is None else static_int(t, width.value, width.node, "a width")
    attributes = {} if number == 32 else {"width": Number(number, I32)}
    return emit_free(t, given, given.word, [value, by], value.type, attributes=attributes)


_REDUCED = {"sum": "add", "max": "max", "min": "min"}


@handles("redux_add", "redux_max", "redux_min")
def _redux(t: Tracer, given: Arguments) -> Value | None:
    """Return the sum or extreme over a warp."""
    bound = given.bind(t, "value", optional=("signedness",))
    value, word = _number(t, bound["value"]), given.word.rpartition("_")[2]
    word = _REDUCED.get(word, word)
    signs = [] if word == "add" else _sign(t, value.type, bound.get("signedness"))
    return emit_free(t, given, f"redux_{word}", [value], value.type, signs)


def _number(t: Tracer, argument: Argument) -> Value:
    """Return a number; one that Python knows is an i32 or an f32."""
    is_whole = isinstance(argument.value, int) and not isinstance(argument.value, bool)
    value = as_type(t, argument.value, I32, argument.node) if is_whole else argument.value
    return scalar_of(t, value, argument.node)[0]


def _sign(t: Tracer, type_: Type, argument: Argument | None) -> list[str]:
    """Return the word for the sign of integers: what is asked for, or what their type says."""
    if not isinstance(type_, Scalar) or not type_.is_integer:
        return []
    word = ("unsigned" if type_.name.startswith("u") else "signed") if argument is None else argument.value
    if argument is not None and word not in ("signed", "unsigned"):
        raise t.error(AttributeValueError, argument.node, f"no sign is {describe(word)}", help='"signed" or "unsigned"')
    return [str(word)]


# memory


def _pointer(t: Tracer, argument: Argument) -> tuple[Value, Scalar]:
    value = argument.value
    if not isinstance(value, Value) or not isinstance(value.type, Ptr):
        raise t.error(OperandError, argument.node, f"a pointer is needed here, got {describe(value)}")
    return value, value.type.element


def _caches(bound: Mapping[str, Argument]) -> list[str]:
    """Return the words for caches, as they are written."""
    named = [(word, bound[word].value) for word in ("l1cache", "l2cache") if word in bound]
    return [part for word, value in named if value is not None for part in (word, "(", str(value), ")")]


@handles("ldg")
def _load(t: Tracer, given: Arguments) -> Value | None:
    bound = given.bind(t, "ptr", optional=("offset", "l1cache", "l2cache"))
    pointer, element = _pointer(t, bound["ptr"])
    offset = bound.get("offset", Argument(0, given.node))
    written = (OPERAND, "[", OPERAND, "]", *_caches(bound), ":", str(pointer.type), "->", str(element))
    operands = pointer, as_index(t, offset.value, offset.node)
    return _add(t, "ldg", operands, element, {WRITTEN: written}, t.span(given.node))


@handles("stg")
def _store(t: Tracer, given: Arguments) -> None:
    bound = given.bind(t, "value", "ptr", optional=("offset", "l1cache", "l2cache"))
    pointer, element = _pointer(t, bound["ptr"])
    offset = bound.get("offset", Argument(0, given.node))
    value = as_type(t, bound["value"].value, element, bound["value"].node)
    written = (OPERAND, ",", OPERAND, "[", OPERAND, "]", *_caches(bound), ":", str(pointer.type), ",", str(element))
    operands = value, pointer, as_index(t, offset.value, offset.node)
    _add(t, "stg", operands, None, {WRITTEN: written}, t.span(given.node))


@handles(*_ATOMICS, "atomic_cas")
def _atomic(t: Tracer, given: Arguments) -> Value | None:
    names = ("compare", "value") if given.word == "atomic_cas" else ("value",)
    bound = given.bind(t, "ptr", *names, optional=("l2cache", "signedness"))
    pointer, element = _pointer(t, bound["ptr"])
    values = [as_type(t, bound[name].value, element, bound[name].node) for name in names]
    is_ordered = given.word.endswith(("min", "max"))
    words = [*_caches(bound), *(_sign(t, element, bound.get("signedness")) if is_ordered else [])]
    return emit_free(t, given, given.word, [pointer, *values], element, words)


# numbers


@handles(*_UNARY, *(f"scalar.{word}" for word in ("exp", "log", "sqrt")))
def _function(t: Tracer, given: Arguments) -> Value | None:
    value, type_ = _float(t, given.bind(t, "value")["value"])
    return emit_free(t, given, given.word, [value], type_)


@handles("fmin", "fmax", "pow", "fma")
def _functions(t: Tracer, given: Arguments) -> Value | None:
    """Return a function of floats of one type, which those have that the body computes."""
    names = ("a", "b", "c") if given.word == "fma" else ("lhs", "rhs")
    bound = given.bind(t, *names)
    made = next((bound[name] for name in names if isinstance(bound[name].value, Value)), bound[names[0]])
    _, type_ = _float(t, made)
    values = [as_type(t, bound[name].value, type_, bound[name].node) for name in names]
    return emit_free(t, given, given.word, values, type_)


def _float(t: Tracer, argument: Argument) -> tuple[Value, Scalar]:
    """Return a number and its type; whole ones that Python knows are f32."""
    value, node = argument.value, argument.node
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return scalar_of(t, as_type(t, value, F32, node) if is_whole else value, node)


@handles("mulhi", "mul_i32toi64")
def _product(t: Tracer, given: Arguments) -> Value | None:
    bound = given.bind(t, "lhs", "rhs", optional=("signedness",))
    lhs, rhs = _number(t, bound["lhs"]), _number(t, bound["rhs"])
    result = I64 if given.word == "mul_i32toi64" else lhs.type
    return emit_free(t, given, given.word, [lhs, rhs], result, _sign(t, lhs.type, bound.get("signedness")))


@handles("prmt")
def _permute(t: Tracer, given: Arguments) -> Value | None:
    bound = given.bind(t, "a", "b", "selector")
    return emit_free(t, given, "prmt", [as_integer(t, each.value, I32, each.node) for each in bound.values()], I32)


@handles("convert")
def _convert(t: Tracer, given: Arguments) -> Value | None:
    bound = given.bind(t, "value", "dtype", optional=("round", "sat", "signedness"))
    value, target = _number(t, bound["value"]), bound["dtype"].value
    if not isinstance(target, Scalar) or not isinstance(value.type, Scalar):
        raise t.error(OperandError, bound["dtype"].node, f"a type is needed here, got {describe(target)}")
    mode = bound["round"].value if "round" in bound else "r"
    sat = bound["sat"].value if "sat" in bound else target.is_integer
    integer = next((type_ for type_ in (value.type, target) if type_.is_integer), None)
    words = ["round", "(", str(mode).lower(), ")", "sat" if sat else "nosat"]
    words += _sign(t, integer, bound.get("signedness")) if integer else []
    return emit_free(t, given, "convert", [value], target, words)
