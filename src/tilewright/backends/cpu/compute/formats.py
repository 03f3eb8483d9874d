"""Formats: floats of 8 bits and fewer, which no machine computes with, converted by table or by their bits.

Lanes of such a type are its bits. Sixteen bits of a float, the last one set where more followed, say how it rounds to
so few, so one table of 2^16 bytes takes every float to its format and one of 2^8 floats takes it back. Formats that are
floats like others, only shorter, are rounded to by a few instructions, in a fourth of the time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tilewright.arrays import np
from tilewright.dtypes import FP8E4M3FN, FP8E5M2, DataType
from tilewright.native.llvm import F32, I8, I32, I64, Builder, Value, lanes, mangled, vector
from tilewright.native.terms import Term
from tilewright.records import record


def is_tabled(dtype: DataType) -> bool:
    """Return whether a type is a float that is converted by table."""
    return dtype.is_float() and dtype.bits <= 8


def to_f32(b: Builder, bits: Value, dtype: DataType) -> Value:
    """Emit the floats that bytes of a format stand for."""
    b.module.declare(_values(dtype))
    return looked_up(b, f"@values.{dtype}", bits, F32, 4)


@record
class Layout:
    """How many bits of a format are its fraction, by how much it raises exponents, and the byte after its largest."""

    fraction: int
    bias: int
    beyond: int


LAYOUTS = {FP8E4M3FN: Layout(3, 7, 0x7F), FP8E5M2: Layout(2, 15, 0x7C)}


def from_f32(b: Builder, floats: Value, dtype: DataType) -> Value:
    """Emit the bytes of a format that floats round to."""
    if dtype in LAYOUTS:
        return _rounded(Term(b, floats), dtype, LAYOUTS[dtype]).value
    b.module.declare(_bytes(dtype))
    x = Term(b, floats).bits()
    more = Term(b, b.compare("icmp ne", (x & 0xFFFF).value, x.like(0).value)).to("zext", I32)
    return looked_up(b, f"@bytes.{dtype}", (x.shifted_down(16) | more).value, I8, 1)


def _rounded(x: Term, dtype: DataType, layout: Layout) -> Term:
    """Return the bytes of a format that floats round to, ties to even, by their bits."""
    size, low = x.magnitude().bits(), 23 - layout.fraction
    least = 2.0 ** (1 - layout.bias)  # without a leading one below; the sum's last bit is then the format's smallest
    carried = size + (size.shifted_down(low) & 1) + ((1 << low - 1) - 1)
    normal = carried.shifted_down(low) - (127 - layout.bias << layout.fraction)
    magic = least * 2.0**low
    small = (x.magnitude() + magic).bits() - x.like(magic).bits()
    finite = (x.magnitude() < least).choose(small, normal).intrinsic("llvm.umin", layout.beyond)
    whole = x.is_nan().choose(size.like(_nan(dtype)), finite)
    return (whole | (x.bits().shifted_down(24) & 0x80)).to("trunc", I8)


def _nan(dtype: DataType) -> int:
    """Return the byte that is no number."""
    nan: Any = np.array([np.nan], np.float32).astype(dtype.numpy)
    return int(nan.view(np.uint8)[0]) & 0x7F


@cache
def _values(dtype: DataType) -> str:
    """Return the table of the floats that each byte of a format stands for."""
    every: Any = np.arange(256, dtype=np.uint8)
    values = every.view(dtype.numpy).astype(np.float32).astype(np.float64).view(np.uint64)
    numbers = ", ".join(f"float 0x{int(v):016X}" for v in values)
    return f"@values.{dtype} = internal constant [256 x float] [{numbers}]"


@cache
def _bytes(dtype: DataType) -> str:
    """Return the table of the byte that each float rounds to, by its upper half."""
    halves: Any = np.arange(1 << 16, dtype=np.uint32) << 16
    with np.errstate(all="ignore"):
        numbers = halves.view(np.float32).astype(dtype.numpy).view(np.uint8)
    text = numbers.tobytes().hex("\\").upper()
    return f'@bytes.{dtype} = internal constant [65536 x i8] c"\\{text}"'


def looked_up(b: Builder, table: str, index: Value, type_: str, align: int) -> Value:
    """Emit the elements of a table at some indices."""
    count = lanes(index.type)
    wide = b.convert("zext", index, vector(I64, count))
    addresses = b.value(vector("ptr", count), f"getelementptr {type_}, ptr {table}, {wide}")
    if count == 1:
        return b.load(type_, addresses, align)
    whole, mask = vector(type_, count), Value(vector("i1", count), f"<{', '.join(['i1 true'] * count)}>")
    name = f"llvm.masked.gather.{mangled(whole)}.v{count}p0"
    b.module.intrinsic(name, whole, addresses.type, "i32", mask.type, whole)
    return b.value(whole, f"call {whole} @{name}({addresses}, i32 {align}, {mask}, {whole} zeroinitializer)")
