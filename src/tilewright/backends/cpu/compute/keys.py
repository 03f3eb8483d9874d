"""Keys: elements as integers in the same order, for sorting."""

from __future__ import annotations

from tilewright.backends.cpu.compute.storage import splat
from tilewright.dtypes import BF16, FP16, FP32, FP64, DataType
from tilewright.native.llvm import I64, Builder, Value, element, lanes, vector

INFINITY = {FP64: 0x7FF0000000000000, FP32: 0x7F800000, FP16: 0x7C00, BF16: 0x7F80}
"""The bits of what is larger than all numbers."""


def float_key(b: Builder, bits: Value, infinity: int) -> Value:
    """Return signed integers in the order of floats: NaN is the largest, and both zeros are equal."""
    width = int(element(bits.type)[1:])
    least, most = 1 << (width - 1), (1 << (width - 1)) - 1
    sign = b.op("ashr", bits, splat(bits.type, width - 1))
    key = b.op("xor", bits, b.op("and", sign, splat(bits.type, most)))
    key = b.select(b.compare("icmp eq", bits, splat(bits.type, -least)), splat(bits.type, 0), key)
    unordered = b.compare("icmp sgt", b.op("and", bits, splat(bits.type, most)), splat(bits.type, infinity))
    return b.select(unordered, splat(bits.type, most), key)


def unsigned_key(b: Builder, bits: Value, dtype: DataType, is_descending: bool) -> Value:
    """Return unsigned integers in the order of elements, or the other way round, from the bits of those."""
    key = float_key(b, bits, INFINITY[dtype]) if dtype.is_float() else bits
    if dtype.is_float() or dtype.is_signed_int():
        key = b.op("xor", key, splat(key.type, -(1 << (dtype.bits - 1))))
    return b.op("xor", key, splat(key.type, -1)) if is_descending else key


def record(b: Builder, key: Value, below: Value, bits: int) -> Value:
    """Return a key above 32 bits of another number, as one integer of so many bits."""
    wide = vector(f"i{bits}", lanes(key.type))
    low = b.op("and", below, splat(below.type, (1 << 32) - 1))
    low = b.convert("zext", low, wide) if element(wide) != I64 else low
    return b.op("or", b.op("shl", b.convert("zext", key, wide), splat(wide, 32)), low)
