"""Scalars: Python numbers as constants of the module, and one scalar type as another."""

from __future__ import annotations

import ast
import math
import re

from tilewright.arrays import np
from tilewright.dtypes import objection, round_scalar, show_number
from tilewright.errors import DTypeMismatchError, NotStaticError, OperandError
from tilewright.pto.module import Value
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe, natural
from tilewright.pto.types import F32, I1, I64, INDEX, Scalar, Type
from tilewright.source import Span


def constant(t: Tracer, value: object, type: Scalar, node: ast.AST, *, are_bits: bool = False) -> Value:
    """Return a Python number as a constant of a type; OperandError for what is no such number.

    Bits of a signless integer may be those of a number without a sign.
    """
    span = t.span(node)
    if not isinstance(value, (bool, int, float)):
        raise OperandError(f"a number is needed here, got {describe(value)}", spans=[span], help=f"it becomes {type}")
    if type.is_float:
        reason, number = objection(value, type.dtype), float(round_scalar(value, type.dtype))
        if reason or (math.isinf(number) and not math.isinf(value)):
            help = reason or 'use a wider type, or write "inf"'
            raise OperandError(f"{show_number(value)} is out of the range of {type}", spans=[span], help=help)
        return t.writer.constant(number, type, span)
    if isinstance(value, float):
        raise OperandError(f"{value!r} is no {type}", spans=[span], help=f"round it: `int({value!r})`")
    if not _fits(value, type, are_bits):
        raise OperandError(f"{show_number(value)} is out of the range of {type}", spans=[span], help="use a wider type")
    return t.writer.constant(bool(value) if type == I1 else int(value), type, span)


def literal(t: Tracer, value: object, type: Scalar, node: ast.AST) -> Value:
    """Return `pto.f32(value)`: of a number, a scalar, a word such as `"-inf"`, or the bits of one as in `"0xFC00"`."""
    if type.is_packed or (type.is_float and type.bits < 16):
        message = f"{type} has no numbers of its own"
        raise t.error(OperandError, node, message, help="load elements of it from memory")
    if not isinstance(value, str):
        return cast(t, value, type, node) if isinstance(value, Value) else constant(t, value, type, node)
    number = _spelled(value, type)
    if number is None:
        help = '"inf", "-inf" and "nan" are floats, and "0x7F800000" the bits of a number'
        raise t.error(OperandError, node, f"{value!r} is no {type}", help=help)
    return (
        t.writer.constant(number, type, t.span(node))
        if type.is_float
        else constant(t, number, type, node, are_bits=True)
    )


def _spelled(word: str, type: Scalar) -> int | float | None:
    """Return the number that a word is, or that has the bits it says; None for other words."""
    if re.fullmatch("0[xX][0-9a-fA-F]+", word) is None:
        return _NUMBERS.get(word) if type.is_float else None
    bits = int(word, 16)
    if bits >> type.bits:
        return None
    return float(np.frombuffer(bits.to_bytes(type.nbytes, "little"), type.dtype.numpy)[0]) if type.is_float else bits


_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _fits(value: int, type: Scalar, are_bits: bool) -> bool:
    low, high = type.dtype.limits
    is_either = are_bits and type != I1 and type.name.startswith("i") and type != INDEX
    return low <= value <= ((1 << type.bits) - 1 if is_either else high)


def as_leaf(t: Tracer, leaf: object, type: Type, node: ast.AST) -> Value:
    """Return a leaf as a value of the type that was found for it."""
    if isinstance(leaf, Value):
        return leaf
    assert isinstance(type, Scalar)
    return constant(t, leaf, type, node)


def as_type(t: Tracer, value: object, type: Scalar, node: ast.AST) -> Value:
    """Return a scalar operand of exactly a type: numbers become constants, values must have it already."""
    if not isinstance(value, Value):
        return constant(t, value, type, node)
    if value.type != type:
        text = ast.unparse(node) if isinstance(node, ast.expr) else "x"
        help = f"convert it: `pto.cast({text}, pto.{type.name})`"
        raise t.error(DTypeMismatchError, node, f"{type} is needed here, got {value.type}", help=help)
    return value


def as_integer(t: Tracer, value: object, type: Scalar, node: ast.AST) -> Value:
    """Return an integer operand of a type; integers of other types are converted, as sizes and addresses are."""
    if not isinstance(value, Value):
        return constant(t, value, type, node)
    if not isinstance(value.type, Scalar) or not value.type.is_integer or value.type == I1:
        help = "sizes, offsets and addresses are integers"
        raise t.error(OperandError, node, f"an integer is needed here, got {value.type}", help=help)
    return convert(t, value, type, t.span(node))


def as_index(t: Tracer, value: object, node: ast.AST) -> Value:
    """Return an operand that counts elements."""
    return as_integer(t, value, INDEX, node)


def as_number(t: Tracer, value: object, node: ast.AST) -> Value:
    """Return a value of the module for a number of either kind; Python's take their natural type."""
    if isinstance(value, Value):
        return value
    return constant(t, value, natural(value) if isinstance(value, (bool, int, float)) else INDEX, node)


def scalar_of(t: Tracer, value: object, node: ast.AST) -> tuple[Value, Scalar]:
    """Return a number of either kind as a value, and its type; OperandError where it is no number."""
    made = as_number(t, value, node)
    if isinstance(made.type, Scalar):
        return made, made.type
    help = "tiles and vectors have ops of their own: pto.tile.add, pto.vadd"
    raise t.error(OperandError, node, f"a number is needed here, got {describe(made)}", help=help)


def convert(t: Tracer, value: Value, type: Scalar, span: Span) -> Value:
    """Return a scalar as another scalar type, by the op that does so."""
    have = value.type
    assert isinstance(have, Scalar)
    if have == type:
        return value
    if not _is_one_step(have, type):
        value = convert(t, value, I64 if INDEX in (have, type) else F32, span)
        return convert(t, value, type, span)
    result = t.writer.value(_conversion(have, type), [value], type, span)
    if value in t.writer.never_negative and type.bits >= have.bits:
        t.writer.never_negative.add(result)
    return result


def _conversion(have: Scalar, type: Scalar) -> str:
    unsigned = have.name.startswith("ui") or have == I1
    if INDEX in (have, type) and have.is_integer and type.is_integer:
        return "arith.index_castui" if unsigned or type.name.startswith("ui") else "arith.index_cast"
    if have.is_integer and type.is_integer:
        if have.bits == type.bits and I1 not in (have, type):
            return "arith.bitcast"
        narrows = type == I1 or (have != I1 and have.bits > type.bits)
        return "arith.trunci" if narrows else "arith.extui" if unsigned else "arith.extsi"
    if have.is_integer:
        return "arith.uitofp" if unsigned else "arith.sitofp"
    if type.is_integer:
        return "arith.fptoui" if type.name.startswith("ui") else "arith.fptosi"
    return "arith.truncf" if have.bits > type.bits else "arith.extf"


def cast(t: Tracer, value: object, type: Scalar, node: ast.AST) -> Value:
    """Return a number of either kind as a scalar type; OperandError where it is no number."""
    if not isinstance(value, Value):
        number = int(value) if isinstance(value, float) and math.isfinite(value) and type.is_integer else value
        return constant(t, number, type, node)
    have = value.type
    if not isinstance(have, Scalar):
        raise t.error(OperandError, node, f"only scalars convert, got {have}", help="pto.castptr casts pointers")
    return convert(t, value, type, t.span(node))


def _is_one_step(have: Scalar, type: Scalar) -> bool:
    """Return whether an op converts so: an index becomes a float as an i64 does, and f16 and bf16 meet in f32."""
    if INDEX in (have, type):
        return have.is_integer and type.is_integer
    return not (have.is_float and type.is_float and have.bits == type.bits)


def static_int(t: Tracer, value: object, node: ast.AST, what: str) -> int:
    """Return a whole number that the compiler must know."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Value):
        help = "use a literal, a global or a `pto.const_expr` parameter"
        raise t.error(NotStaticError, node, f"{what} must be known at compile time, got {value.type}", help=help)
    raise t.error(OperandError, node, f"{what} is a whole number, got {describe(value)}", help="write an int")
