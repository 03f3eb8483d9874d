"""Wide products: those of two numbers in twice their bits."""

from __future__ import annotations

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT64, UINT64, UNSIGNED
from tilewright.ops.builder import element_of
from tilewright.pto.machine.machine import Machine


def high_half(m: Machine, lhs: Expr, rhs: Expr, is_signed: bool) -> Expr:
    """Return the high half of a product of two numbers of one type, in that type."""
    dtype = element_of(lhs)
    if dtype.bits == 64:
        return _high_word(m, lhs, rhs, is_signed)
    whole = whole_product(m, lhs, rhs, is_signed)
    return m.b.cast(m.b.scalar("shr", whole, constant(dtype.bits, element_of(whole))), dtype)


def whole_product(m: Machine, lhs: Expr, rhs: Expr, is_signed: bool) -> Expr:
    """Return a product of 32-bit numbers, whole."""
    narrow = element_of(lhs) if is_signed else UNSIGNED[element_of(lhs).get_byte()]
    wide = INT64 if is_signed else UINT64
    return m.b.scalar("mul", *(m.b.cast(m.b.cast(value, narrow), wide) for value in (lhs, rhs)))


def _high_word(m: Machine, lhs: Expr, rhs: Expr, is_signed: bool) -> Expr:
    """Return the high half of a product of 64-bit numbers, made of products of their halves."""
    b, half = m.b, constant(32, UINT64)
    low_bits = constant((1 << 32) - 1, UINT64)
    a, c = (b.cast(value, UINT64) for value in (lhs, rhs))
    (al, ah), (cl, ch) = ((b.scalar("bit_and", v, low_bits), b.scalar("shr", v, half)) for v in (a, c))
    low, cross = b.scalar("mul", al, cl), b.scalar("mul", ah, cl)
    middle = b.scalar("add", cross, b.scalar("shr", low, half))
    other = b.scalar("add", b.scalar("mul", al, ch), b.scalar("bit_and", middle, low_bits))
    high = b.scalar("add", b.scalar("mul", ah, ch), b.scalar("shr", middle, half))
    high = b.cast(b.scalar("add", high, b.scalar("shr", other, half)), element_of(lhs))
    if is_signed:
        for value, by in ((lhs, rhs), (rhs, lhs)):
            sign = b.scalar("shr", value, constant(63, element_of(value)))
            high = b.scalar("sub", high, b.scalar("bit_and", sign, by))
    return high
