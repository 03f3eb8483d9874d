"""Quotients of integers: processors divide vectors of floats, and of integers one at a time."""

from __future__ import annotations

from tilewright.backends.cpu.compute.reaches import Reach
from tilewright.native.llvm import F32, F64, Builder, Value, element, lanes, vector

WIDEST = 32
"""Bits of the integers whose quotients doubles give."""


def by_floats(b: Builder, x: Value, y: Value, divisor: Reach, is_signed: bool) -> Value | None:
    """Return x / y without its fraction, or None where instructions on integers are quicker.

    No divisor is zero, and no quotient too large for its type. A quotient that is no integer is at least 1 / y below
    the next, which is at most 2 ** (bits + 1) / y: further than floats of 24 bits round up that are made of integers of
    16, and doubles that are made of 32. Compilers multiply by the inverse of a number that they know.
    """
    is_known = divisor is not None and divisor[0] == divisor[1]
    sign, bits, count = ("s" if is_signed else "u"), int(element(x.type)[1:]), lanes(x.type)
    if is_known or count == 1 or bits > WIDEST:
        return None
    wide = vector(F32 if bits <= 16 else F64, count)
    over, under = (b.convert(f"{sign}itofp", each, wide) for each in (x, y))
    return b.convert(f"fpto{sign}i", b.op("fdiv", over, under), x.type)
