"""Storage: how elements lie in memory, and the numbers that matrix code makes of them when it loads them."""

from __future__ import annotations

from tilewright.dtypes import BF16, FP16, FP32, FP64, DataType
from tilewright.native.llvm import F32, F64, I1, I32, I64, PTR, Builder, Value, element, i32, lanes, mangled, vector
from tilewright.native.target import Target

INTEGERS = (I32, I64)
"""The LLVM types that integers are computed with."""
FIRST_CACHE, SECOND_CACHE = i32(3), i32(2)
"""The caches that lines are fetched to."""


def can_mask(target: Target, bits: int) -> bool:
    """Return whether loads and stores of elements this wide can be masked without a branch per lane."""
    return target.vector_bits == 512 or (target.vector_bits == 256 and bits in (32, 64))


def stored_type(dtype: DataType, target: Target) -> str:
    """Return the LLVM type an element is loaded as."""
    if dtype == FP16 and target.has_f16c:
        return "half"
    return computed_type(dtype) if dtype in (FP32, FP64) else f"i{8 * dtype.get_byte()}"


def computed_type(dtype: DataType) -> str:
    """Return the LLVM type an element is computed with."""
    if dtype.is_float():
        return F64 if dtype == FP64 else F32
    return I64 if dtype.bits == 64 else I32


def splat(type_: str, number: int | str) -> Value:
    """Return a constant of `type_`, the same in every lane of a vector."""
    scalar = type_.split(" x ")[-1].rstrip(">")
    return Value(type_, str(number) if scalar == type_ else f"splat ({scalar} {number})")


def first_lanes(b: Builder, count: Value, total: int) -> Value:
    """Return the mask of the first `count` of `total` lanes."""
    numbers = Value(vector(I64, total), f"<{', '.join(f'i64 {lane}' for lane in range(total))}>")
    return b.compare("icmp slt", numbers, b.splat(count, total))


def load(b: Builder, type_: str, pointer: Value, align: int, mask: Value | None = None) -> Value:
    """Emit a load; lanes outside the mask are zero and not touched."""
    if mask is None:
        return b.load(type_, pointer, align)
    name = f"llvm.masked.load.{mangled(type_)}.p0"
    b.module.intrinsic(name, type_, PTR, "i32", mask.type, type_)
    return b.call(type_, name, pointer, Value(I32, str(align)), mask, Value(type_, "zeroinitializer"))


def store(b: Builder, value: Value, pointer: Value, align: int, mask: Value | None = None) -> None:
    """Emit a store; lanes outside the mask are not touched."""
    if mask is None:
        return b.store(value, pointer, align)
    name = f"llvm.masked.store.{mangled(value.type)}.p0"
    b.module.intrinsic(name, "void", value.type, PTR, "i32", mask.type)
    seen = _hidden(b, mask) if element(value.type).startswith("i") else mask
    return b.invoke(name, value, pointer, Value(I32, str(align)), seen)


def fetch(b: Builder, pointer: Value, cache: Value = FIRST_CACHE, *, is_written: bool = False) -> None:
    """Emit a hint to fetch a line, wherever that is: it never faults."""
    name = b.module.intrinsic("llvm.prefetch.p0", "void", PTR, *[I32] * 3)
    b.invoke(name, pointer, i32(int(is_written)), cache, i32(1))


def _hidden(b: Builder, mask: Value) -> Value:
    """Return a mask that LLVM does not know for a constant.

    Of truncated lanes under a constant mask of one lane, LLVM 22 stores all the bytes they had before:
    https://github.com/llvm/llvm-project/issues/179489.
    """
    bits = f"i{lanes(mask.type)}"
    word = b.convert("zext", b.convert("bitcast", mask, bits), I64)
    hidden = b.value(I64, f'call i64 asm "", "=r,0"({word})')
    return b.convert("bitcast", b.convert("trunc", hidden, bits), mask.type)


def load_number(
    b: Builder, dtype: DataType, target: Target, pointer: Value, count: int = 1, mask: Value | None = None
) -> Value:
    """Emit a load of `count` stored elements and their conversion to what is computed with."""
    raw = load(b, vector(stored_type(dtype, target), count), pointer, dtype.get_byte(), mask)
    return _widened(b, dtype, target, raw)


def spread_number(b: Builder, dtype: DataType, target: Target, pointer: Value, count: int) -> Value:
    """Emit a load of one stored element, converted, into every lane."""
    if dtype != FP16:
        return b.splat(load_number(b, dtype, target, pointer), count)
    raw = b.load(stored_type(dtype, target), pointer, dtype.get_byte())  # one f16 costs as much to convert as many
    return _widened(b, dtype, target, b.splat(raw, count))


def _widened(b: Builder, dtype: DataType, target: Target, raw: Value) -> Value:
    """Return loaded elements as the numbers that are computed with."""
    wide, bits = (vector(type_, lanes(raw.type)) for type_ in (computed_type(dtype), I32))
    if raw.type == wide:
        return raw
    if dtype == BF16:
        shifted = b.op("shl", b.convert("zext", raw, bits), splat(bits, 16))
        return b.convert("bitcast", shifted, wide)
    if dtype == FP16:
        return b.convert("fpext", raw, wide) if target.has_f16c else _from_half(b, b.convert("zext", raw, bits), wide)
    return b.convert("sext" if dtype.is_signed_int() else "zext", raw, wide)


def _from_half(b: Builder, half: Value, wide: str) -> Value:
    """Return the bits of f16 numbers as f32, computed with integers where the machine has no conversion."""
    bits = half.type
    magnitude = b.op("shl", b.op("and", half, splat(bits, 0x7FFF)), splat(bits, 13))
    scaled = b.op("fmul", b.convert("bitcast", magnitude, wide), splat(wide, "0x46F0000000000000"))  # by 2**112
    special = b.compare("icmp uge", magnitude, splat(bits, 0x7C00 << 13))
    infinite = b.select(special, splat(bits, 0x7F800000), splat(bits, 0))
    sign = b.op("shl", b.op("and", half, splat(bits, 0x8000)), splat(bits, 16))
    joined = b.op("or", b.convert("bitcast", scaled, bits), b.op("or", sign, infinite))
    return b.convert("bitcast", joined, wide)


def through(b: Builder, where: Value, type_: str) -> Value:
    """Emit a load through a vector of addresses."""
    mask = splat(vector(I1, lanes(type_)), 1)
    name = f"llvm.masked.gather.{mangled(type_)}.{mangled(where.type)}"
    args = [where, Value(I32, "4" if element(type_) == F32 else "8"), mask, Value(type_, "poison")]
    return b.call(type_, b.module.intrinsic(name, type_, *(arg.type for arg in args)), *args)
