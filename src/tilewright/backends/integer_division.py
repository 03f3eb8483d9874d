"""Integer division: floors and remainders of traced elements, whatever the divisor.

Compilers take a division by zero, and that of the smallest integer by -1, for something that never happens: such a
divisor is replaced before it is divided by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tilewright.backends.traced import Traced
from tilewright.dtypes import DataType

T = TypeVar("T", bound=Traced)


def floor_divided(divide: Callable[[T, T], T], a: T, b: T, dtype: DataType) -> T:
    """Return integers divided and rounded down, with an instruction that drops fractions; no divisor is zero."""
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
