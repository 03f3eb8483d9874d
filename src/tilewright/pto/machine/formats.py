"""Formats: floats of eight and four bits that no element type here has, made of their bits and made into them.

`hif8` spends its bits as numbers need them. Behind the sign a prefix says how many bits the exponent has, and what is
left is the fraction; the exponent is a sign and a magnitude without its leading one:

    11eeeem  8 to 15      10eeemm  4 to 7      01eemmm  2 and 3      001emmm  1      0001mmm  0
    0000kkk  the number 2 ** (k - 23), and zero for k = 0; 0x80 is no number, 0x6F and 0xEF are infinite
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import FP8E4M3FN, FP32, INT32, UINT8, DataType
from tilewright.ops.builder import element_of, tile_type
from tilewright.pto.machine.elements import cast, filled, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import bitcast, reshaped

DECODED = ("hif8", "f8E4M3", "f4E2M1", "f4E1M2")
"""The formats, each by its name."""
_CLASSES = ((96, 4, 1, 8), (64, 3, 2, 4), (32, 2, 3, 2), (16, 1, 3, 1))
"""Of `hif8`: the prefix, the bits of exponent and fraction, and the least exponent."""
_HALVES = {"f4E2M1": (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0), "f4E1M2": tuple(0.125 + 0.25 * i for i in range(7))}
"""Halfway between the numbers of formats of four bits."""


MOST_HIF8 = 32768
"""The largest finite number of an hif8."""


def decoded(m: Machine, codes: Expr, name: str) -> Expr:
    """Return the f32 numbers that bytes stand for, of four bits the low ones."""
    code = cast(m, codes, INT32)
    size = _int(m, "and_", code, 7 if name[:2] == "f4" else 127)
    made = {"hif8": _from_hif8, "f8E4M3": _from_e4m3, "f4E2M1": _from_e2m1, "f4E1M2": _from_e1m2}[name](m, size)
    sign = _int(m, "and_", code, 8 if name[:2] == "f4" else 128)
    signed = where(m, sign, CmpType.NE, constant(0, INT32), m.b.tile("neg", made), made)
    if name != "hif8":
        return signed
    return where(m, code, CmpType.EQ, constant(0x80, INT32), filled(m, tile_type(made), float("nan")), signed)


def _int(m: Machine, name: str, value: Expr, by: int) -> Expr:
    """Return integers and a number."""
    return m.b.tile(name, value, constant(by, INT32))


def seen_as(m: Machine, value: Expr, dtype: DataType) -> Expr:
    """Return the bits of a tile as another type, in the same shape."""
    shape = tile_type(value).shape
    flat = reshaped(m, value, 1, shape[0] * shape[1])
    return reshaped(m, bitcast(m, flat, dtype), *shape)


def _from_hif8(m: Machine, size: Expr) -> Expr:
    tiny = seen_as(m, _int(m, "shl", _int(m, "add", size, 127 - 23), 23), FP32)
    made = where(m, size, CmpType.EQ, constant(0, INT32), filled(m, tile_type(tiny), 0.0), tiny)
    ones = _int(m, "or_", _int(m, "shl", _int(m, "and_", size, 7), 20), 127 << 23)
    made = where(m, size, CmpType.GE, constant(8, INT32), seen_as(m, ones, FP32), made)
    for prefix, bits, rest, least in reversed(_CLASSES):
        field = _int(m, "shr", _int(m, "and_", size, 31 if least > 1 else 15), rest)
        magnitude = _int(m, "or_", _int(m, "and_", field, least - 1), least)
        negative = _int(m, "and_", field, 1 << (bits - 1))
        signed = where(m, negative, CmpType.NE, constant(0, INT32), m.b.tile("neg", magnitude), magnitude)
        fraction = _int(m, "shl", _int(m, "and_", size, (1 << rest) - 1), 23 - rest)
        whole = m.b.tile("or_", _int(m, "shl", _int(m, "add", signed, 127), 23), fraction)
        made = where(m, size, CmpType.GE, constant(prefix, INT32), seen_as(m, whole, FP32), made)
    infinite = filled(m, tile_type(made), float("inf"))
    return where(m, size, CmpType.EQ, constant(0x6F, INT32), infinite, made)


def _from_e4m3(m: Machine, size: Expr) -> Expr:
    known = cast(m, seen_as(m, cast(m, size, UINT8), FP8E4M3FN), FP32)
    type_ = tile_type(known)
    above = where(m, size, CmpType.GT, constant(0x78, INT32), filled(m, type_, float("nan")), known)
    return where(m, size, CmpType.EQ, constant(0x78, INT32), filled(m, type_, float("inf")), above)


def _from_e2m1(m: Machine, size: Expr) -> Expr:
    fraction = _int(m, "shl", _int(m, "and_", size, 1), 22)
    exponent = _int(m, "shl", _int(m, "add", _int(m, "shr", size, 1), 126), 23)
    small = m.b.tile("mul", cast(m, size, FP32), constant(0.5))
    return where(m, size, CmpType.LT, constant(2, INT32), small, seen_as(m, m.b.tile("or_", exponent, fraction), FP32))


def _from_e1m2(m: Machine, size: Expr) -> Expr:
    return m.b.tile("mul", cast(m, size, FP32), constant(0.25))


def encoded(m: Machine, numbers: Expr, name: str, saturates: bool) -> Expr:
    """Return the bytes that stand for f32 numbers: the nearest, of two the even one, of `hif8` the larger one."""
    size = m.b.tile("abs", numbers)
    if name == "hif8":
        made = _to_hif8(m, size, saturates)
    elif name == "f8E4M3":
        made = _to_e4m3(m, size, saturates)
    else:
        made = _to_four_bits(m, size, _HALVES[name])
    below = where(m, seen_as(m, numbers, INT32), CmpType.LT, constant(0, INT32), _signs(m, made, name), made)
    if name == "hif8":
        none = filled(m, tile_type(made), 0x80)
        below = where(m, numbers, CmpType.EQ, numbers, below, none)
    return cast(m, below, UINT8)


def _signs(m: Machine, made: Expr, name: str) -> Expr:
    """Return codes with their sign set; `hif8` has no zero with one."""
    signed = _int(m, "or_", made, 8 if name[:2] == "f4" else 128)
    return where(m, made, CmpType.EQ, constant(0, INT32), made, signed) if name == "hif8" else signed


def _to_hif8(m: Machine, size: Expr, saturates: bool) -> Expr:
    exact = seen_as(m, size, INT32)
    bits = _rounded(m, exact)
    exponent = _int(m, "sub", _int(m, "shr", bits, 23), 127)
    magnitude = m.b.tile("abs", exponent)
    made = exponent
    for prefix, width, rest, least in ((8, 0, 3, 0), *reversed(_CLASSES)):
        field = _int(m, "and_", magnitude, max(least - 1, 0))
        if width:
            lower = _int(m, "or_", field, 1 << (width - 1))
            field = where(m, exponent, CmpType.LT, constant(0, INT32), lower, field)
        fraction = _int(m, "and_", _int(m, "shr", bits, 23 - rest), (1 << rest) - 1)
        code = _int(m, "or_", m.b.tile("or_", _int(m, "shl", field, rest), fraction), prefix)
        made = code if not least else where(m, magnitude, CmpType.GE, constant(least, INT32), code, made)
    tiny = m.b.tile("maximum", _int(m, "add", exponent, 23), constant(1, INT32))
    made = where(m, exponent, CmpType.LT, constant(-15, INT32), tiny, made)
    made = where(m, exact, CmpType.LT, constant(127 - 23 << 23, INT32), filled(m, tile_type(bits), 0), made)
    limit = filled(m, tile_type(bits), 0x6E if saturates else 0x6F)
    return where(m, bits, CmpType.GT, constant(15 + 127 << 23, INT32), limit, made)


def _rounded(m: Machine, bits: Expr) -> Expr:
    """Return the bits of numbers cut to as much fraction as their exponents leave, halves rounded up."""
    exponent = m.b.tile("abs", _int(m, "sub", _int(m, "shr", bits, 23), 127))
    made = bits
    for rest, least in ((3, 0), (2, 4), (1, 8), (0, 16)):
        cut = _int(m, "shl", _int(m, "shr", _int(m, "add", bits, 1 << (22 - rest)), 23 - rest), 23 - rest)
        made = where(m, exponent, CmpType.GE, constant(least, INT32), cut, made)
    return made


def _to_e4m3(m: Machine, size: Expr, saturates: bool) -> Expr:
    near = m.b.tile("cast", m.b.tile("minimum", size, constant(240.0)), FP8E4M3FN)
    made = cast(m, seen_as(m, near, UINT8), INT32)
    beyond = filled(m, tile_type(made), 0x77 if saturates else 0x78)
    made = where(m, size, CmpType.GE, constant(248.0), beyond, made)
    return where(m, size, CmpType.EQ, size, made, filled(m, tile_type(made), 0x7F))


def _to_four_bits(m: Machine, size: Expr, halves: Sequence[float]) -> Expr:
    """Return how many of the numbers halfway between two are passed; what lies there goes to the even one."""
    assert element_of(size) == FP32
    type_ = tile_type(cast(m, size, INT32))
    made = filled(m, type_, 0)
    for i, half in enumerate(halves):
        how = CmpType.GE if i % 2 else CmpType.GT
        made = where(m, size, how, constant(half), filled(m, type_, i + 1), made)
    return made
