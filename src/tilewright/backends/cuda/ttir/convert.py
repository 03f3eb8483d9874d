"""Conversion: elements in another type, exactly as `ops.convert` says."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.backends.cuda.ttir.elements import UFUNCS, Elements, computed
from tilewright.backends.cuda.ttir.formats import from_f32, is_format, rounded_to_odd, to_f32
from tilewright.backends.cuda.ttir.text import F32, F64, Text, Value
from tilewright.backends.cuda.ttir.values import element_of
from tilewright.core.enums import RoundMode
from tilewright.dtypes import BF16, BOOL, FP32, FP64, DataType

WIDE = 32
"""Bits of integers of which fp32 does not have all."""


def cast(t: Text, value: Value, source: DataType, target: DataType, mode: RoundMode) -> Value:
    """Return elements as `cast` converts them: to integers they are rounded by `mode` and saturate, NaN is zero."""
    if is_format(source):
        value, source = to_f32(t, value, source), FP32
    if source.is_float() and target.is_int():
        return _to_integer(_ROUNDINGS[mode](computed(t, value, source)), target)
    return as_element(t, value, source, target)


def as_element(t: Text, value: Value, source: DataType, target: DataType) -> Value:
    """Return elements rounded to a type: floats to the nearest, even on ties; integers wrap."""
    if source == target:
        return value
    if is_format(source):
        return as_element(t, to_f32(t, value, source), FP32, target)
    if is_format(target):
        single = rounded_to_odd(t, value) if source == FP64 else as_element(t, value, source, FP32)
        return from_f32(t, single, target)
    if target == BOOL:
        found = computed(t, value, source)
        return (found != 0).value
    if source.is_float():
        return _from_float(t, value, source, target)
    if target == BF16 and source.bits >= WIDE:
        return t.convert("arith.truncf", _odd_float(t, value, source), element_of(BF16))
    if target.is_float():
        return t.convert(_as_float(source), value, element_of(target))
    found = _integer(t, value, source, element_of(target))
    return found if target.bits >= 8 else _nibble(t, found, target)


def _as_float(source: DataType) -> str:
    return "arith.sitofp" if source.is_signed_int() else "arith.uitofp"


def _odd_float(t: Text, value: Value, source: DataType) -> Value:
    """Return integers as fp32 that round on as they would have: the last bit is set where something was lost.

    GPUs before Hopper make bfloat16 of integers by way of fp32, rounding twice.
    """
    through, lost = (F32, 8) if source.bits == WIDE else (F64, 11)
    low, bit, shape = (1 << lost) - 1, 1 << lost, value.shape

    def number(of: int) -> Value:
        return t.integer(of, value.element, shape)

    is_cut = t.compare("cmpi ne", t.simple("arith.andi", value, number(low)), number(0))
    whole = t.simple("arith.andi", value, number(~low))
    odd = t.simple("arith.ori", whole, t.select(is_cut, number(bit), number(0)))
    half = 1 << (source.bits - lost - 1)
    above = t.simple("arith.addi", value, number(half)) if source.is_signed_int() else value
    found = t.select(t.compare("cmpi ult", above, number(2 * half)), value, odd)
    made = t.convert(_as_float(source), found, through)
    return made if through == F32 else rounded_to_odd(t, made)


def _nibble(t: Text, value: Value, target: DataType) -> Value:
    """Return the low four bits of bytes as a number."""
    four = t.integer(4, "i8", value.shape)
    right = "arith.shrsi" if target.is_signed_int() else "arith.shrui"
    return t.simple(right, t.simple("arith.shli", value, four), four)


def _from_float(t: Text, value: Value, source: DataType, target: DataType) -> Value:
    if not target.is_float():  # only a number that is one already comes here
        return _to_integer(_ROUNDINGS[RoundMode.trunc](computed(t, value, source)), target)
    have, want = source.bits, target.bits
    if have == want:
        value, have = t.convert("arith.extf", value, F32), 32
    if source == BF16 and target == FP32 and math.prod(value.shape) > 1:
        return _widened(t, value)
    return t.convert("arith.extf" if have < want else "arith.truncf", value, element_of(target))


def _widened(t: Text, value: Value) -> Value:
    """Return bfloat16 as fp32 two at a time, for which Triton would have three instructions.

    Where nothing but bfloat16 is made of it, that is left to Triton, which then computes with two at a time.
    """
    both = "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;"
    result = t.machine(both, value, element=F32, registers="=f,=f,r", count=2)
    t.widened[result] = value
    return result


def _integer(t: Text, value: Value, source: DataType, element: str) -> Value:
    have, want = (int(each[1:]) for each in (value.element, element))
    if have == want:
        return value
    if want < have:
        return t.convert("arith.trunci", value, element)
    longer = t.convert("arith.extsi" if source.is_signed_int() else "arith.extui", value, element)
    t.lengthened[longer] = value, source
    return longer


def _to_integer(x: Elements, target: DataType) -> Value:
    """Return whole floats as integers, the nearest there is; NaN is zero.

    The GPU saturates where it converts to 32 and 64 bits, so narrower integers are cut from wider ones. It is told so
    in its own words: what Triton's say of numbers that do not fit is undefined, and constants become anything.
    """
    t, shape = x.t, x.value.shape
    if target.bits == 64:
        is_nan = t.compare("cmpf uno", x.value, x.value)
        return t.select(
            is_nan, t.integer(0, "i64", shape), _cut(t, x.value, "u64" if target.is_unsigned_int() else "s64")
        )
    is_double = x.value.element == F64
    if target.bits == 32 and target.is_signed_int() and not is_double:
        return _cut(t, x.value, "s32")
    through = "i64" if target.bits == 32 or is_double else "i32"
    low, high = (t.integer(int(limit), through, shape) for limit in target.limits)
    whole = _cut(t, x.value, f"s{through[1:]}")
    if through == "i64":
        whole = t.select(t.compare("cmpf uno", x.value, x.value), t.integer(0, "i64", shape), whole)
    held = t.simple("arith.minsi", t.simple("arith.maxsi", whole, low), high)
    return t.convert("arith.trunci", held, element_of(target))


def _cut(t: Text, value: Value, kind: str) -> Value:
    """Return floats without their fractions as what PTX calls the integers, the nearest there is."""
    registers = f"={'l' if kind.endswith('64') else 'r'},{'d' if value.element == F64 else 'f'}"
    return t.machine(f"cvt.rzi.{kind}.{value.element} $0, $1;", value, element=f"i{kind[1:]}", registers=registers)


def _odd(x: Elements) -> Elements:
    """Return floats without fractions, those that had one at an odd number."""
    whole = UFUNCS["trunc"](x)
    half = whole * 0.5
    is_cut = (whole != x) & (UFUNCS["trunc"](half) == half)
    away = UFUNCS["copysign"](x.like(1.0), x)
    return x.of(x.t.select(is_cut.value, (whole + away).value, whole.value))


def _half_away(x: Elements) -> Elements:
    return x.of(x.t.library("__nv_round" if x.value.element == F64 else "__nv_roundf", x.value))


_ROUNDINGS: dict[RoundMode, Callable[[Elements], Elements]] = {
    RoundMode.none: UFUNCS["rint"],
    RoundMode.rint: UFUNCS["rint"],
    RoundMode.round: _half_away,
    RoundMode.floor: UFUNCS["floor"],
    RoundMode.ceil: UFUNCS["ceil"],
    RoundMode.trunc: UFUNCS["trunc"],
    RoundMode.odd: _odd,
}
