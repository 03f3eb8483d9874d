"""Elementwise ops, on tiles and on registers: `pto.tadd` and `pto.vadd` are one op."""

from __future__ import annotations

import re

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import FP32, UNSIGNED
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import element_of
from tilewright.pto.laws import alike, bits_apart, by_numbers, rectifiable
from tilewright.pto.machine.elements import arithmetic, cast, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import elementwise, given, operand, rows_of
from tilewright.pto.machine.registers import active, bitcast, every, kept, lanes_of, mask_of, masked
from tilewright.pto.machine.tiles import cover, read
from tilewright.pto.machine.values import Number, Tile, Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare, reach
from tilewright.pto.operand_laws import exclusive, in_turn, remainders, scaled_sum, shifted, sloped
from tilewright.pto.text.form import register, tile
from tilewright.pto.types import SCALARS, VReg

_UNARY = {
    "exp": ("exp", "np.exp(x)"), "log": ("log", "np.log(x)"), "ln": ("log", "np.log(x)"),
    "sqrt": ("sqrt", "np.sqrt(x)"), "rsqrt": ("rsqrt", "1 / np.sqrt(x)"), "recip": ("recip", "1 / x"),
    "neg": ("neg", "-x"), "abs": ("abs", "np.abs(x)"), "relu": ("relu", "np.maximum(x, 0)"),
}  # fmt: skip
_BINARY = {
    "add": ("add", "x + y"), "sub": ("sub", "x - y"), "mul": ("mul", "x * y"), "div": ("div", "x / y"),
    "max": ("maximum", "np.maximum(x, y)"), "min": ("minimum", "np.minimum(x, y)"), "fmod": ("fmod", "np.fmod(x, y)"),
    "and": ("and_", "x & y"), "or": ("or_", "x | y"), "xor": ("xor", "x ^ y"),
    "shl": ("shl", "x << (y & 31)"), "shr": ("shr", "x >> (y & 31)"),
}  # fmt: skip
"""The op of the tile IR that each is, and what both mean."""
_OF_ONE = {f"{letter}{word}": sentence for letter in "tv" for word, (_, sentence) in _UNARY.items()}
_OF_TWO = {f"{letter}{word}": sentence for letter in "tv" for word, (_, sentence) in _BINARY.items()}
_WITH_NUMBER = {f"{name}s": re.sub(r"\by\b", "n", sentence) for name, sentence in _OF_TWO.items()}


def _word(op: Op) -> str:
    """Return what an op does: its name without the letter for tiles or vectors."""
    return op.name.removeprefix("pto.")[1:]


@declare("pto.texp tlog tsqrt tneg tabs trelu", tile("t"), rule=reach, means=_OF_ONE)
@declare("pto.trecip", tile("t"), rule=reach, law=in_turn, means=_OF_ONE)
@declare("pto.trsqrt", tile("tz?"), rule=reach, means=_OF_ONE)
@declare("pto.vabs vneg vexp vln vsqrt", register("vm"), means=_OF_ONE)
@declare("pto.vrelu", register("vm"), law=rectifiable, means=_OF_ONE)
@elementwise
def _unary(m: Machine, op: Op, x: Expr) -> Expr:
    """A function of each element."""
    return m.b.tile(_UNARY[_word(op)][0], x)


@declare("pto.tadd tsub tmul tdiv tmax tmin tfmod tshl tshr", tile("tt"), rule=reach, law=alike, means=_OF_TWO)
@declare("pto.tadds tsubs tmuls tmaxs tmins", tile("ts"), rule=reach, law=by_numbers, means=_WITH_NUMBER)
@declare("pto.tfmods", tile("te"), rule=reach, law=remainders, means=_WITH_NUMBER)
@declare("pto.tshls tshrs", tile("te"), rule=reach, law=shifted, means=_WITH_NUMBER)
@declare("pto.tdivs", tile("ts|st"), rule=reach, law=by_numbers, means=_WITH_NUMBER)
@declare("pto.vadd vsub vmul vdiv vmax vmin", register("vvm"), means=_OF_TWO)
@declare("pto.vadds vsubs vmuls vmaxs vmins", register("vem"), means=_WITH_NUMBER)
@declare("pto.vshl vshr", register("uum", "u"), means=_OF_TWO)
@declare("pto.vshls vshrs", register("vim"), counts=SCALARS["i16"], means=_WITH_NUMBER)
@elementwise
def _binary(m: Machine, op: Op, x: Expr, y: Expr) -> Expr:
    """Elements of two tiles or vectors, or of one and a number."""
    mode = op.attributes.get("precision_mode", op.attributes.get("precisionType"))
    return arithmetic(m, _function(op), x, y, precise=getattr(mode, "word", "") == "HIGH_PRECISION")


def _function(op: Op) -> str:
    return (_BINARY.get(_word(op)) or _BINARY[_word(op).removesuffix("s")])[0]


@declare("pto.tand tor", tile("tt"), rule=reach, law=alike, means=_OF_TWO)
@declare("pto.tands tors", tile("te"), rule=reach, law=bits_apart, means=_WITH_NUMBER)
@declare("pto.txor", tile("ttz?"), rule=reach, law=exclusive, means=_OF_TWO)
@declare("pto.txors", tile("tez?"), rule=reach, law=exclusive, means=_WITH_NUMBER)
@declare(
    "pto.vand vor vxor",
    register("vvm"),
    example="(%x: v64xi32, %y: v64xi32, %m: m32); %r = {op} %x, %y, %m -> v64xi32",
    means=_OF_TWO,
)
@elementwise
def _bitwise(m: Machine, op: Op, x: Expr, y: Expr) -> Expr:
    """Elements of two, bit by bit."""
    lhs, rhs = _bits(m, op, x), _bits(m, op, y)
    return bitcast(m, m.b.tile(_function(op), lhs, rhs), element_of(x))


@declare("pto.tnot", tile("t"), rule=reach, means="~x")
@declare("pto.vnot", register("vm"), example="(%x: v64xi32, %m: m32); %r = {op} %x, %m -> v64xi32", means="~x")
@elementwise
def _inverted(m: Machine, op: Op, x: Expr) -> Expr:
    """Each element with its bits flipped."""
    return bitcast(m, m.b.tile("not_", _bits(m, op, x)), element_of(x))


def _bits(m: Machine, op: Op, x: Expr) -> Expr:
    """Return bits, whatever they stand for: floats in registers go through integers of their size."""
    dtype = element_of(x)
    return bitcast(m, x, UNSIGNED[dtype.get_byte()]) if dtype.is_float() and not op.outs else x


@declare(
    "pto.vaddrelu vsubrelu",
    register("vvm?"),
    means={"vaddrelu": "np.maximum(x + y, 0)", "vsubrelu": "np.maximum(x - y, 0)"},
)
@elementwise
def _then_relu(m: Machine, op: Op, x: Expr, y: Expr) -> Expr:
    """Sums or differences, nothing negative."""
    return m.b.tile("relu", arithmetic(m, _word(op)[:3], x, y))


@declare("pto.tlrelu", tile("ts"), rule=reach, law=sloped, means="np.where(x > 0, x, n * x)")
@elementwise
def _leaky(m: Machine, op: Op, x: Expr) -> Expr:
    """Elements, negative ones times a slope, which is not rounded to their type."""
    made = _sloped(m, cast(m, x, FP32), m.b.cast(m.expr(op.ins[1]), FP32))
    return cast(m, made, element_of(x))


def _sloped(m: Machine, x: Expr, slope: Expr) -> Expr:
    """Return elements, those that are not positive times a slope: zero times infinity is NaN."""
    return where(m, x, CmpType.GT, constant(0.0), x, m.b.tile("mul", x, slope))


@declare("pto.vlrelu", register("vem"), means="np.where(x > 0, x, n * x)")
@elementwise
def _leaky_lanes(m: Machine, op: Op, x: Expr, slope: Expr) -> Expr:
    """Lanes, negative ones times a slope."""
    return _sloped(m, x, slope)


@declare("pto.tprelu", tile("ttz?"), rule=reach, law=in_turn, means="np.where(x > 0, x, x * y)")
@declare("pto.vprelu", register("vvm?"), means="np.where(x > 0, x, x * y)")
@elementwise
def _parametric(m: Machine, op: Op, x: Expr, slope: Expr) -> Expr:
    """Elements, negative ones times a slope of their own."""
    return _sloped(m, x, slope)


@declare("pto.trem", tile("ttz?"), rule=reach, law=remainders, means="np.remainder(x, y)")
@declare("pto.trems", tile("tez?"), rule=reach, law=remainders, means="np.fmod(x, n)")
@elementwise
def _remainder(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> Expr:
    """The remainder with the sign of the divisor; of a float and a number it keeps the dividend's."""
    keeps_sign = op.name == "pto.trems" and element_of(lhs).is_float()
    return m.b.tile("fmod" if keeps_sign else "rem", lhs, rhs)


# several steps at once


@declare(
    "pto.taxpy",
    tile("zs", "z"),
    rule=reach,
    law=scaled_sum,
    is_by_source=True,
    example="(%x: t8x64xf32, %n: f32, %y: t8x64xf32); {op} ins(%x, %n) outs(%y)",
    means="y + n * x",
)
def _add_scaled(m: Machine, op: Op, target: Tile, source: Tile, scale: Expr) -> None:
    """A tile times a number, added to the destination."""
    dtype = target.type.element.dtype
    x = cast(m, read(m, source, target.valid, target.limits), dtype)
    factor = m.b.cast(scale, dtype)
    old = operand(m, op.outs[0], target)
    cover(m, target, m.b.tile("add", old, m.b.tile("mul", x, factor)))


@declare("pto.vaxpy", register("vvem|vem|vve"), means="x * n + y")
def _scale(m: Machine, op: Op) -> Expr | None:
    """A vector times a number, and another added."""
    x, *others = rows_of(m, op)
    number = next(v for v in op.operands if isinstance(m.values[v], Number))
    scaled = m.b.tile("mul", x, m.b.cast(m.expr(number), element_of(x)))
    return given(m, op, m.b.tile("add", scaled, others[0]) if others else scaled)


@declare("pto.taddc tsubc", tile("ttt"), rule=reach, means={"taddc": "x + y + z", "tsubc": "x - y + z"})
@declare("pto.taddsc tsubsc", tile("tet"), rule=reach, means={"taddsc": "x + n + y", "tsubsc": "x - n + y"})
@elementwise
def _chain(m: Machine, op: Op, a: Expr, b: Expr, c: Expr) -> Expr:
    """Three operands added or subtracted in order."""
    return m.b.tile("add", m.b.tile(_word(op)[:3], a, b), c)


@declare("pto.vmula", register("vvvm"), means="x + y * z")
@elementwise
def _multiply_add(m: Machine, op: Op, total: Expr, lhs: Expr, rhs: Expr) -> Expr:
    """The accumulator plus the product of the two others."""
    return m.b.tile("add", total, m.b.tile("mul", lhs, rhs))


@declare("pto.vmadd", register("vvvm"), means="x * y + z")
@elementwise
def _scale_add(m: Machine, op: Op, total: Expr, lhs: Expr, rhs: Expr) -> Expr:
    """The product of the accumulator and the first, plus the second."""
    dtype = element_of(total)
    if dtype.bits < 32:
        raise UnsupportedFeatureError(f"pto.vmadd does not take {dtype} elements", help="convert them with pto.vcvt")
    return m.b.tile("add", m.b.tile("mul", total, lhs), rhs)


@declare(
    "pto.vexpdif",
    register("uun?", "u", "part", False),
    example='(%x: v64xf32, %y: v64xf32, %m: m32); %r = {op} %x, %y, %m, "ODD" -> v64xf32',
    means="np.exp(x - y)",
)
def _exponential_of_difference(m: Machine, op: Op, lhs: Vector, rhs: Vector) -> Expr:
    """The exponential of a difference in fp32; of shorter floats, of their even or odd lanes."""
    type_, mask = op.results[0].of(VReg), mask_of(m, op)
    step = lanes_of(lhs.expr) // type_.lanes
    first = 1 if op.attributes.get("part") == "ODD" and step > 1 else 0
    a, b = (cast(m, every(m, v.expr, step, first, type_.lanes), type_.element.dtype) for v in (lhs, rhs))
    made = m.b.tile("exp", m.b.tile("sub", a, b))
    if mask is None or mask.bits == type_.element.bits:
        return masked(m, made, mask)
    on = active(m, mask, mask.bits // 8)
    return kept(m, made, None if on is None else every(m, on, step, first, type_.lanes))
