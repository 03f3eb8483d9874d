"""Scalar arithmetic: which NumPy function each scalar op is, for every back end that emits them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tilewright.backends.traced import Traced
from tilewright.dtypes import DataType

T = TypeVar("T", bound=Traced)

ARITHMETIC = {
    "add": "add", "sub": "subtract", "mul": "multiply", "min": "minimum", "max": "maximum", "neg": "negative",
    "bit_and": "bitwise_and", "bit_or": "bitwise_or", "bit_xor": "bitwise_xor", "invert": "invert",
    "and_": "bitwise_and", "or_": "bitwise_or",
}  # fmt: skip
COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
SHIFTS = {"shl": "left_shift", "shr": "right_shift"}
DIVISIONS = ("div", "floordiv", "mod")


def by_value(compare: Callable[[T, T], T], a: T, b: T, result: T) -> T:
    """Return a comparison of two integers as wide as each other, of which one may have a sign and the other none.

    What has no sign is larger than every number below zero; for others, `result` is the answer.
    """
    if a.element.is_float() or a.element.is_signed_int() == b.element.is_signed_int():
        return result
    signed = a if a.element.is_signed_int() else b
    below = compare(*(signed.like(-1 if side is signed else 0) for side in (a, b)))
    return a.function("where", (signed < 0, below, result))


def float_division(kind: str, a: T, b: T) -> T:
    """Return what NumPy's divide, floor_divide and mod give: the quotient comes from the exact remainder."""
    if kind == "div":
        return a / b

    def where(condition: T, then: T, other: T) -> T:
        return a.function("where", (condition, then, other))

    def zero_like(signed: T) -> T:
        return a.ufunc("copysign", (0, signed))

    rest = a.ufunc("fmod", (a, b))
    wrong = (rest != 0) & ((rest < 0) ^ (b < 0))
    if kind == "mod":
        return where(rest == 0, zero_like(b), where(wrong, rest + b, rest))
    quotient = (a - rest) / b
    quotient = where(wrong, quotient - 1, quotient)
    floor = a.ufunc("floor", (quotient,))
    whole = where(quotient - floor > 0.5, floor + 1, floor)
    return where(b == 0, a / b, where(quotient == 0, zero_like(a / b), whole))


def floor_divided(divide: Callable[[T, T], T], a: T, b: T, dtype: DataType) -> T:
    """Return integers divided and rounded down, with an instruction that drops fractions; no divisor is zero.

    Compilers take a division by zero, and that of the smallest integer by -1, for something that never happens: such
    a divisor is replaced before it is divided by.
    """
    if dtype.is_unsigned_int():
        return divide(a, b)
    overflows = (a == -(1 << (dtype.bits - 1))) & (b == -1)
    divisor = a.function("where", (overflows, 1, b))
    quotient = divide(a, divisor)
    below = (quotient * divisor != a) & ((a ^ divisor) < 0)
    return a.function("where", (below, quotient - 1, quotient))


def remainder(rest: Callable[[T, T], T], a: T, b: T, dtype: DataType) -> T:
    """Return what is left of integers, with the sign of the dividend; of those divided by zero nothing is."""
    zero = b == 0
    harmless = zero | (b == -1) if dtype.is_signed_int() else zero
    return a.function("where", (zero, 0, rest(a, a.function("where", (harmless, 1, b)))))
