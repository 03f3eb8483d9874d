"""Narrow floats: half and bfloat16 lanes to `f32` and back, rounding to the nearest, ties to even.

Half is LLVM's `half`; bfloat16 is kept as `i16`, its bits, which every target can load, store and shift. NaN stays
NaN. Where the target does not convert halves in hardware (`Module.converts_half`), integer arithmetic does.
"""

from __future__ import annotations

from typing import Literal

from tilewright.native.llvm import I32, Builder, Value, element
from tilewright.native.terms import Term

I16 = "i16"
REBIAS = (127 - 15) << 23  # from half's exponents to those of float
HALF_INFINITY, HALF_NORMAL, HALF_OVERFLOW = 0x7C00 << 13, 0x0400 << 13, (15 + 1 + 127) << 23


def to_f32(b: Builder, x: Value) -> Value:
    """Emit the conversion of `half` lanes, or of `i16` lanes that hold bfloat16, to `float`."""
    narrow = Term(b, x)
    if element(x.type) == I16:
        return (narrow.to("zext", I32) << 16).to("bitcast", "float").value
    return (narrow.to("fpext", "float") if b.module.converts_half else widened(narrow)).value


def from_f32(b: Builder, x: Value, kind: Literal["half", "bfloat"]) -> Value:
    """Emit the conversion of `float` lanes to `half` lanes, or to `i16` lanes that hold bfloat16."""
    wide = Term(b, x)
    if kind == "bfloat":
        return bfloat_bits(wide).value
    return (wide.to("fptrunc", "half") if b.module.converts_half else narrowed(wide)).value


def bfloat_bits(x: Term, *, is_number: bool = False) -> Term:
    """Return floats rounded to their upper halves; NaN, if one may be among them, stays NaN."""
    bits = x.bits()
    rounded = bits + (bits.shifted_down(16) & 1) + 0x7FFF
    if is_number:
        return rounded.shifted_down(16).to("trunc", I16)
    return x.is_nan().choose(bits | 0x400000, rounded).shifted_down(16).to("trunc", I16)


def widened(x: Term) -> Term:
    """Return halves as floats by their bits."""
    bits = x.bits().to("zext", I32)
    size = (bits & 0x7FFF) << 13
    normal = size + (size < HALF_INFINITY).choose(size.like(REBIAS), 2 * REBIAS)
    denormal = ((size + (REBIAS + (1 << 23))).to("bitcast", "float") - 2.0**-14).bits()
    magnitude = (size < HALF_NORMAL).choose(denormal, normal)
    return (magnitude | ((bits & 0x8000) << 16)).to("bitcast", "float")


def narrowed(x: Term) -> Term:
    """Return floats as halves by their bits."""
    bits, size = x.bits(), x.magnitude().bits()
    normal = (size + (size.shifted_down(13) & 1) + (0xFFF - REBIAS)).shifted_down(13)
    denormal = (x.magnitude() + 0.5).bits() - 0x3F000000  # the sum's last bit is half's smallest denormal
    finite = (size < HALF_NORMAL + REBIAS).choose(denormal, normal)
    special = x.is_nan().choose(size.like(0x7E00), 0x7C00)
    magnitude = (size < HALF_OVERFLOW).choose(finite, special)
    return (magnitude | (bits.shifted_down(16) & 0x8000)).to("trunc", I16).to("bitcast", "half")
