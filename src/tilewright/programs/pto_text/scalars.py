"""Scalars: numbers of a program as `arith` ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import add, mul, sub

from tilewright import dtypes as dt
from tilewright.dtypes import DataType
from tilewright.programs.pto_text.values import NoPtoError, Number, element
from tilewright.programs.pto_text.writer import Writer

_OPS = {
    "add": ("addi", "addf", "addi"), "sub": ("subi", "subf", "subi"), "mul": ("muli", "mulf", "muli"),
    "div": ("divsi", "divf", "divui"), "floordiv": ("floordivsi", "", "divui"), "min": ("minsi", "minimumf", "minui"),
    "max": ("maxsi", "maximumf", "maxui"), "bit_and": ("andi", "", "andi"), "bit_or": ("ori", "", "ori"),
    "bit_xor": ("xori", "", "xori"), "and_": ("andi", "", "andi"), "or_": ("ori", "", "ori"),
    "shl": ("shli", "", "shli"), "shr": ("shrsi", "", "shrui"),
}  # fmt: skip
"""What numbers with a sign, floats and numbers without one are computed by."""
_COMPARED = {
    "eq": ("eq", "oeq", "eq"), "ne": ("ne", "une", "ne"), "lt": ("slt", "olt", "ult"), "le": ("sle", "ole", "ule"),
    "gt": ("sgt", "ogt", "ugt"), "ge": ("sge", "oge", "uge"),
}  # fmt: skip


def computed(w: Writer, name: str, operands: list[Number], dtype: DataType) -> Number:
    """Write what a scalar op gives; NoPtoError for one that this export has no words for."""
    if name == "not_":
        return w.number("arith.xori", [operands[0], w.constant(True, dt.BOOL)], dt.BOOL, "i1")
    if name == "invert":
        operands, name = [operands[0], w.constant(-1, dtype)], "bit_xor"
    if name == "neg" and dtype.is_float():
        return w.number("arith.negf", operands, dtype, element(dtype))
    if name == "neg":
        operands, name = [w.constant(0, dtype), operands[0]], "sub"
    if len(operands) != 2:
        raise NoPtoError(f"this export has no words for `{name}` of a number")
    common = _common(operands) if name in _COMPARED else dtype
    a, b = (converted(w, operand, common) for operand in operands)
    if (folded := _folded(w, name, a, b)) is not None:
        return folded
    if common.is_unsigned_int():
        made = _written(w, name, _bits(w, a), _bits(w, b), 2)
        return made if name in _COMPARED else _bits(w, made, common)
    return _written(w, name, a, b, int(common.is_float()))


def _bits(w: Writer, number: Number, dtype: DataType | None = None) -> Number:
    """Return a number without a sign as one that has none said, which `arith` computes with, or back again."""
    wanted = dtype or dt.SIGNED[number.dtype.get_byte()]
    typing = f"{element(number.dtype)} to {element(wanted)}"
    return w.number("builtin.unrealized_conversion_cast", [number], wanted, typing)


def _written(w: Writer, name: str, a: Number, b: Number, column: int) -> Number:
    common, kind = a.dtype, element(a.dtype)
    if name in _COMPARED:
        word = _COMPARED[name][column]
        return w.number(f"arith.cmp{'f' if common.is_float() else 'i'} {word},", [a, b], dt.BOOL, kind)
    if name == "mod" and not common.is_float():
        whole = w.number(f"arith.{_OPS['floordiv'][column]}", [a, b], common, kind)
        return w.number("arith.subi", [a, w.number("arith.muli", [whole, b], common, kind)], common, kind)
    if name in ("mod", "floordiv") and common.is_float():
        return (_modulo if name == "mod" else _floored)(w, a, b)
    op = _OPS.get(name, ("", "", ""))[column]
    if not op:
        raise NoPtoError(f"this export has no words for `{name}` of {common}")
    made = w.number(f"arith.{op}", [a, b], common, kind)
    return replace(made, counts=common == dt.INDEX and _is_natural(name, a, b))


def chosen(w: Writer, condition: Number, a: Number, b: Number) -> Number:
    """Write one of two numbers of one type, as a condition says."""
    return w.number("arith.select", [condition, a, b], a.dtype, element(a.dtype))


def _modulo(w: Writer, a: Number, b: Number) -> Number:
    """Write what is left of a float, with the sign of the divisor."""
    left, zero = remainder(w, a, b), w.constant(0.0, a.dtype)
    turned = chosen(w, _differ(w, left, b), computed(w, "add", [left, b], a.dtype), left)
    nothing = chosen(w, computed(w, "lt", [b, zero], dt.BOOL), w.constant(-0.0, a.dtype), zero)
    return chosen(w, computed(w, "eq", [left, zero], dt.BOOL), nothing, turned)


def remainder(w: Writer, a: Number, b: Number) -> Number:
    """Write what is left of a float, with its own sign."""
    return w.number("arith.remf", [a, b], a.dtype, element(a.dtype))


def _differ(w: Writer, a: Number, b: Number) -> Number:
    """Write whether one of two numbers is less than zero and the other is not."""
    below = (computed(w, "lt", [each, w.constant(0.0, each.dtype)], dt.BOOL) for each in (a, b))
    return w.number("arith.xori", [*below], dt.BOOL, "i1")


def _floored(w: Writer, lhs: Number, rhs: Number) -> Number:
    """Write a quotient of floats rounded down, in doubles: from what is left of the dividend, as NumPy has it."""
    a, b = (converted(w, each, dt.FP64) for each in (lhs, rhs))
    zero, one, quotient = w.constant(0.0, dt.FP64), w.constant(1.0, dt.FP64), computed(w, "div", [a, b], dt.FP64)
    left = remainder(w, a, b)
    whole = computed(w, "div", [computed(w, "sub", [a, left], dt.FP64), b], dt.FP64)
    less, is_left = computed(w, "sub", [whole, one], dt.FP64), computed(w, "ne", [left, zero], dt.BOOL)
    whole = chosen(w, computed(w, "and_", [is_left, _differ(w, left, b)], dt.BOOL), less, whole)
    down = floor_of(w, whole)
    up = computed(w, "add", [down, one], dt.FP64)
    half = computed(w, "sub", [whole, down], dt.FP64)
    near = chosen(w, computed(w, "gt", [half, w.constant(0.5, dt.FP64)], dt.BOOL), up, down)
    nothing = computed(w, "mul", [quotient, zero], dt.FP64)  # has its sign
    found = chosen(w, computed(w, "eq", [whole, zero], dt.BOOL), nothing, near)
    return converted(w, chosen(w, computed(w, "eq", [b, zero], dt.BOOL), quotient, found), lhs.dtype)


def floor_of(w: Writer, x: Number) -> Number:
    """Write a double rounded down, which those of 2**52 and more are."""
    size = computed(w, "max", [x, computed(w, "neg", [x], dt.FP64)], dt.FP64)
    is_small = computed(w, "lt", [size, w.constant(float(1 << 52), dt.FP64)], dt.BOOL)
    cut = converted(w, chosen(w, is_small, x, w.constant(0.0, dt.FP64)), dt.INT64, "trunc")
    whole = converted(w, cut, dt.FP64)
    less = computed(w, "sub", [whole, w.constant(1.0, dt.FP64)], dt.FP64)
    return chosen(w, is_small, chosen(w, computed(w, "gt", [whole, x], dt.BOOL), less, whole), x)


def _is_natural(name: str, a: Number, b: Number) -> bool:
    """Return whether what an op gives is never negative, given what it is told."""
    if name == "max":
        return a.is_natural or b.is_natural
    return name in ("add", "mul", "min", "floordiv") and a.is_natural and b.is_natural


def _folded(w: Writer, name: str, a: Number, b: Number) -> Number | None:
    """Return what needs no op: of indices that are known, and of those that change nothing."""
    if a.dtype != dt.INDEX or name not in _FOLDED:
        return None
    if isinstance(a.known, int) and isinstance(b.known, int):
        return w.constant(_FOLDED[name](a.known, b.known))
    if (name == "add" and b.known == 0) or (name == "mul" and b.known == 1):
        return a
    return b if (name == "add" and a.known == 0) or (name == "mul" and a.known == 1) else None


_FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": add, "sub": sub, "mul": mul, "min": min, "max": max, "floordiv": lambda a, b: a // b,
}  # fmt: skip


def _common(operands: list[Number]) -> DataType:
    """Return what two numbers are compared as."""
    found = [operand.dtype for operand in operands if operand.known is None] or [operands[0].dtype]
    return dt.INDEX if dt.INDEX in found else found[0]


def converted(w: Writer, value: Number, dtype: DataType, mode: str = "round") -> Number:
    """Return a number as one of another type; NoPtoError for a float that becomes an integer in another `mode`."""
    have = value.dtype
    if have == dtype:
        return value
    if dtype == dt.BOOL:
        return computed(w, "ne", [value, w.constant(0, have)], dt.BOOL)
    if mode != "trunc" and have.is_float() and not dtype.is_float():
        raise NoPtoError(f"PTO's numbers become integers towards zero, not by {mode!r}", help='write `mode="trunc"`')
    if value.known is not None and (dtype.is_float() or not have.is_float()):
        return w.constant(float(value.known) if dtype.is_float() else dt.round_scalar(value.known, dtype), dtype)
    if dt.INDEX in (have, dtype) and (have.is_float() or dtype.is_float()):
        return converted(w, converted(w, value, dt.INT64, mode), dtype, mode)
    if {have, dtype} == {
        dt.FP16,
        dt.BF16,
    }:  # nothing goes from one to the other, and every number of both is one of fp32
        return converted(w, converted(w, value, dt.FP32), dtype)
    typing = f"{element(have)} to {element(dtype)}"
    return w.number(f"arith.{_conversion(have, dtype)}", [value], dtype, typing)


def _conversion(have: DataType, dtype: DataType) -> str:
    if have == dt.BOOL:
        return "index_castui" if dtype == dt.INDEX else "uitofp" if dtype.is_float() else "extui"
    if dt.INDEX in (have, dtype):
        return "index_castui" if have.is_unsigned_int() else "index_cast"
    if have.is_float() and dtype.is_float():
        return "extf" if have.bits < dtype.bits else "truncf"
    if have.is_float() or dtype.is_float():
        unsigned = (dtype if have.is_float() else have).is_unsigned_int()
        return f"fpto{'ui' if unsigned else 'si'}" if have.is_float() else f"{'ui' if unsigned else 'si'}tofp"
    if have.bits < dtype.bits:
        return "extui" if have.is_unsigned_int() else "extsi"
    return "trunci" if have.bits > dtype.bits else "bitcast"
