"""Formats: floats of 8 bits and fewer, which are their bytes in registers, put together out of fp32 and taken apart.

A float is rounded by adding a power of two whose last place is that of the format, and taking it away again. Nothing of
this depends on what conversions a GPU has.
"""

from __future__ import annotations

import math
from typing import Any, cast

from tilewright.arrays import ml_dtypes, np
from tilewright.backends.cuda.ttir.elements import UFUNCS, Elements
from tilewright.backends.cuda.ttir.text import F32, F64, Text, Value
from tilewright.dtypes import FP8E8M0, FP32, INT32, UINT32, DataType
from tilewright.records import record

MANTISSA, BIAS = 23, 127
"""Of fp32: how many bits follow the first one, and what its exponents are stored with."""


def is_format(dtype: DataType) -> bool:
    """Return whether a type is a float that is put together out of fp32."""
    return dtype.is_float() and dtype.bits <= 8


@record
class Format:
    """A format: its bits without the sign, how many follow the first one, and the least exponent of a normal number."""

    bits: int
    mantissa: int
    least: int
    largest: float
    over: int
    """What floats that are too large become, without the sign."""
    nan: int
    """What NaN becomes."""

    @staticmethod
    def of(dtype: DataType) -> Format:
        """Return the format of a type."""
        info: Any = cast("Any", ml_dtypes).finfo(dtype.numpy)
        special: Any = cast("Any", np.asarray([math.inf, math.nan], np.float32).astype(dtype.numpy)).view(np.uint8)
        return Format(dtype.bits - 1, int(info.nmant), int(info.minexp), float(info.max), *map(int, special))

    @property
    def shift(self) -> int:
        """How far the bits of the format are from those of fp32."""
        return MANTISSA - self.mantissa


def _bits(x: Elements) -> Elements:
    return x.of(x.t.bits(x.value, "i32"), UINT32)


def _float(bits: Elements) -> Elements:
    return bits.of(bits.t.bits(bits.value, F32), FP32)


def _up(x: Elements, by: int) -> Elements:
    return UFUNCS["left_shift"](x, x.like(by))


def _down(x: Elements, by: int) -> Elements:
    return UFUNCS["right_shift"](x, x.like(by))


def _chosen(condition: Elements, then: Any, other: Elements) -> Elements:
    return other.function("where", (condition, then, other))


def from_f32(t: Text, value: Value, dtype: DataType) -> Value:
    """Return the bytes of a format that floats round to."""
    x = Elements(t, value, FP32)
    code = _exponent(x) if dtype == FP8E8M0 else _code(x, Format.of(dtype))
    return t.convert("arith.trunci", code.value, "i8")


def _code(x: Elements, form: Format) -> Elements:
    bits, is_nan = _bits(x), x != x
    size = _chosen(is_nan, 0.0, UFUNCS["minimum"](UFUNCS["absolute"](x), x.like(2 * form.largest)))
    exponent = _down(_bits(size), MANTISSA)
    exponent = UFUNCS["maximum"](exponent, exponent.like(form.least + BIAS))
    far = _float(_up(exponent + form.shift, MANTISSA))
    size = (size + far) - far
    apart = size * 2.0 ** (form.mantissa - form.least)
    small = apart.of(x.t.convert("arith.fptosi", apart.value, "i32"), UINT32)
    normal = _down(_bits(size), form.shift) - ((BIAS + form.least - 1) << form.mantissa)
    code = _chosen(size < 2.0**form.least, small, normal)
    code = _chosen(size > form.largest, form.over, code)
    return _chosen(is_nan, form.nan, code) ^ _up(_down(bits, 31), form.bits)


def _exponent(x: Elements) -> Elements:
    """Return the power of two that is nearest to a positive float, the larger one of two; NaN for everything else."""
    bits = _bits(x)
    half = 1 << MANTISSA - 1
    small = _chosen(bits > half, 1, bits.like(0))
    code = _chosen(bits < 2 * half, small, _down(bits + half, MANTISSA))
    return _chosen(x > 0, code, bits.like(255))


def to_f32(t: Text, value: Value, dtype: DataType) -> Value:
    """Return the floats that bytes of a format stand for."""
    code = Elements(t, t.convert("arith.extui", value, "i32"), UINT32)
    if dtype == FP8E8M0:
        bits = _chosen(code == 0, 1 << MANTISSA - 1, _up(code, MANTISSA))
        return _float(_chosen(code == 255, 0x7FC00000, bits)).value
    form = Format.of(dtype)
    size = code & ((1 << form.bits) - 1)
    scaled = _float(_up(size, form.shift)) * 2.0 ** (BIAS - 1 + form.least)
    bits = _bits(scaled)
    codes: Any = np.arange(1 << form.bits, dtype=np.uint8)
    numbers: Any = codes.view(dtype.numpy).astype(np.float32)
    for kind, pattern in ((np.isinf, 0x7F800000), (np.isnan, 0x7FC00000)):  # which come last, in this order
        for first in np.flatnonzero(kind(numbers))[:1]:
            bits = _chosen(size >= int(first), pattern, bits)
    return _float(bits | _up(_down(code, form.bits) & 1, 31)).value


def rounded_to_odd(t: Text, value: Value) -> Value:
    """Return doubles as fp32 whose last bit is set where something was lost: they round on as they would have."""
    x = Elements(t, value, FP32)
    near = x.of(t.convert("arith.truncf", value, F32))
    back = x.of(t.convert("arith.extf", near.value, F64))
    is_over = UFUNCS["absolute"](back) > UFUNCS["absolute"](x)
    bits = _bits(near).of(_bits(near).value, INT32)
    cut = _chosen(is_over, bits - 1, bits) | 1
    is_cut = (back != x) & (UFUNCS["absolute"](x) < math.inf)
    return _float(_chosen(is_cut, cut, bits)).value
