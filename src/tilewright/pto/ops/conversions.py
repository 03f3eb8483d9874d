"""Conversions: elements in another type, rounded, wrapped or clamped as the pair of types asks.

On registers, a conversion to narrower elements writes every second or fourth lane of its result, `part` being the first
one; a conversion to wider elements reads every second or fourth lane of its source.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright import dtypes
from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import FP32, FP64, INT32, INT64, SIGNED, UNSIGNED, DataType, finite_limits
from tilewright.errors import AttributeValueError
from tilewright.ops.builder import element_of, known
from tilewright.pto.asked_words import CONVERSION
from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.laws import equally_large, paired
from tilewright.pto.machine.elements import cast, where
from tilewright.pto.machine.formats import DECODED, decoded, encoded
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import elementwise
from tilewright.pto.machine.registers import active, apart, bitcast, every, full, kept, lanes_of, mask_of, masked
from tilewright.pto.machine.tiles import cover, read
from tilewright.pto.machine.values import Number, Predicate, Tile, Vector
from tilewright.pto.module import Op, word_of
from tilewright.pto.op import Constants, declare
from tilewright.pto.ops.masks import is_upper
from tilewright.pto.text.form import Form, Slot, register, tile
from tilewright.pto.types import TileBuf, VReg

MODES = {
    "NONE": "rint", "RINT": "rint", "CAST_RINT": "rint", "ROUND": "round", "FLOOR": "floor", "CEIL": "ceil",
    "TRUNC": "trunc", "ODD": "odd",
}  # fmt: skip
_WRAPS = frozenset(
    [("fp16", "uint8"), ("fp16", "int8"), ("fp16", "int16"), ("fp32", "int16"), ("int64", "int32"), ("int32", "int16")]
)
"""The pairs whose overflow is cut off unless asked otherwise; all others stop at the limits."""

_FUNCTIONS = {"rint": "round", "floor": "floor", "ceil": "ceil", "trunc": "trunc"}
"""The ways to round floats to integers that are functions of the language."""

LOST = 12
"""How many bits of an integer of 64 do not fit into a double, and one more."""

WHOLE = float(1 << 23)
"""From here on every fp32 number is an integer."""


def _known_bits(op: Op, _: Constants) -> None:
    """Refuse elements of which two share a byte: they are no columns of their own."""
    for value in (op.ins[0], op.outs[0]):
        element = value.of(TileBuf).element
        if element.is_packed and element.name not in DECODED:
            message = f"`pto.tcvt` converts no pairs, `%{value.name}` holds {element}"
            raise PtoTypeMismatchError(message, help="convert them one pair at a time with `pto.convert`")


@declare(
    "pto.tcvt",
    tile("zz?", "z"),
    rule=_known_bits,
    law=equally_large,
    knows_packed=True,
    means="np.rint(x)",
    words=CONVERSION,
)
def _convert(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """Elements in another type, clamped or wrapped: integers of floats as `rmode` says, floats to the nearest."""
    mode = word_of(op.attributes.get("rmode", op.attributes.get("round_mode", "CAST_RINT"))).upper()
    saturates = op.attributes.get("sat_mode", op.attributes.get("satmode", op.attributes.get("saturation_mode")))
    given = None if saturates is None else word_of(saturates).upper() in ("ON", "SAT", "TRUE")
    values, come, to = read(m, source, target.valid, target.limits), source.type.element, target.type.element
    if come == to and come.is_packed:
        made = values
    elif to.is_packed:
        numbers = decoded(m, values, come.name) if come.is_packed else cast(m, values, FP32)
        made = encoded(m, numbers, to.name, given is not False)
    elif come.is_packed:
        made = converted_lanes(m, decoded(m, values, come.name), to.dtype, MODES[mode], given)
    else:
        made = converted(m, values, to.dtype, MODES[mode], given)
    cover(m, target, made)


@declare("pto.tpack", tile("z", "z"), example="(%x: t8x64xi32, %out: t8x64xi16); {op} ins(%x) outs(%out)", means="x")
def _pack(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """Integers cut to the low bits that the destination has room for."""
    values = read(m, source, target.valid, target.limits)
    cover(m, target, converted(m, values, target.type.element.dtype, "trunc", saturates=False))


def converted(m: Machine, values: Expr, to: DataType, mode: str, saturates: bool | None) -> Expr:
    """Return a tile in another element type."""
    come = element_of(values)
    if come == to:
        return _rounded(m, values, mode) if come.is_float() else values
    if saturates is None:
        saturates = (come.name, to.name) not in _WRAPS
    if come.is_float() and to.is_float():
        return m.b.tile("cast", _finite(m, values, to) if saturates else values, to)
    if come.is_float() and not saturates:
        whole = m.b.tile("cast", values, INT64, mode)
        return whole if to == INT64 else m.b.tile("cast", whole, to)
    if not come.is_float() and saturates:
        values = _clamped(m, values, to)
        if to == come:
            return values
    return m.b.tile("cast", values, to, mode)


def _rounded(m: Machine, values: Expr, mode: str) -> Expr:
    """Return floats rounded to integers, zeros with their signs; what has no fraction, or is no number, stays."""
    if mode in _FUNCTIONS:
        return m.b.tile(_FUNCTIONS[mode], values)
    whole = m.b.tile("cast", values, INT32, mode)
    back = m.b.tile("cast", whole, element_of(values))
    back = where(m, back, CmpType.EQ, constant(0.0), m.b.tile("mul", values, constant(0.0)), back)
    size = m.b.tile("abs", values)
    return where(m, size, CmpType.LT, constant(WHOLE), back, values)


def _finite(m: Machine, values: Expr, to: DataType) -> Expr:
    """Return floats no smaller and no larger than the finite ones of another type."""
    most, come = finite_limits(to)[1], element_of(values)
    if finite_limits(come)[1] <= most:
        return values
    values = cast(m, values, FP32) if to.bits == come.bits else values  # which have the limits of half floats
    dtype = element_of(values)
    low = m.b.tile("minimum", values, constant(most, dtype))
    return m.b.tile("maximum", low, constant(-most, dtype))


def _clamped(m: Machine, values: Expr, to: DataType) -> Expr:
    """Return integers no smaller and no larger than another type holds."""
    come = element_of(values)
    low, high = (int(limit) for limit in (to.limits if to.is_int() else finite_limits(to)))
    if come.limits[1] > high:
        values = m.b.tile("minimum", values, constant(high, come))
    if come.limits[0] < low:
        values = m.b.tile("maximum", values, constant(low, come))
    return values


MODES_BY_LETTER = {"R": "rint", "A": "round", "F": "floor", "C": "ceil", "Z": "trunc", "O": "odd"}
_PARTS = {"EVEN": 0, "ODD": 1, "P0": 0, "P1": 1, "P2": 2, "P3": 3}


def mode_of(op: Op, default: str = "R") -> str:
    """Return how an op rounds."""
    given = str(op.attributes.get("rnd", op.attributes.get("round_mode", default)))
    word = default if given in _PARTS else given.removeprefix("ROUND_")
    if word not in MODES_BY_LETTER:
        raise AttributeValueError(f"there is no rounding {given!r}", help=f"one of {', '.join(MODES_BY_LETTER)}")
    return MODES_BY_LETTER[word]


def _part(op: Op, step: int) -> int:
    only = op.attributes.get("rnd")  # of two words in quotes, the first may be left out
    word = str(op.attributes.get("part", only if only in _PARTS else "EVEN")).removeprefix("PART_")
    if word not in _PARTS or _PARTS[word] >= step:
        raise AttributeValueError(f"there is no part {word!r} of {step}", help="EVEN or ODD of two, P0 to P3 of four")
    return _PARTS[word]


@declare(
    "pto.vcvt",
    register("un?", "u"),
    law=paired,
    widens=0,
    example='(%x: v64xf32, %m: m32); %r = {op} %x, %m {rnd = "R", sat = "SAT"} -> v64xi32',
    means="np.rint(x)",
)
def _convert_lanes(m: Machine, op: Op, source: Vector) -> Expr:
    """Lanes in another type; of narrower ones, every second or fourth."""
    return _placed(m, op, source.expr)


@declare(
    "pto.vmulscvt",
    Form("usn", "u", slots=(Slot("rnd", "string"), Slot("part", "string")), needed_slots=0),
    example='(%x: v64xf32, %n: f32, %m: m32); %r = {op} %x, %n, %m, "A", "EVEN" -> v128xf16',
    means="np.stack([np.where(m, x * n, 0), 0 * x], 1).ravel()",
)
def _scale_and_convert(m: Machine, op: Op, source: Vector, scale: Expr) -> Expr:
    """Lanes times a number, in a narrower type."""
    return _placed(m, op, m.b.tile("mul", source.expr, m.b.cast(scale, source.element.dtype, "rint")))


def _placed(m: Machine, op: Op, row: Expr) -> Expr:
    """Return elements converted, in the lanes that the op says; a mask counts the lanes of the side it fits."""
    type_, mask = op.results[0].of(VReg), mask_of(m, op)
    have, want = lanes_of(row), type_.lanes
    few, many = sorted((have, want))
    first = _part(op, many // few) if few < many else 0
    row = every(m, row, have // want, first, want) if have > want else row
    word = op.attributes.get("sat")
    saturates = None if word is None else str(word) in ("SAT", "RS_ENABLE", "ON")
    made = converted_lanes(m, row, type_.element.dtype, mode_of(op), saturates)
    if few == many:
        return masked(m, made, mask)
    made = kept(m, made, _lit(m, mask, many, few, first))
    return apart(m, made, want // have, first) if have < want else made


def _lit(m: Machine, mask: Predicate | None, many: int, few: int, first: int) -> Expr | None:
    """Return the flags of the lanes of the wider elements, from a mask over either side's."""
    on = None if mask is None else active(m, mask, mask.bits // 8)
    if mask is None or on is None:
        return None
    if lanes_of(on) == many:
        return every(m, on, many // few, first, few)
    return active(m, mask, 256 // few)


def converted_lanes(m: Machine, row: Expr, to: DataType, mode: str, saturates: bool | None) -> Expr:
    """Return elements in another type: floats become integers that stop at the limits unless asked to wrap."""
    come = element_of(row)
    if come.is_int() and to.is_float() and mode != "rint":
        return _shortened(m, _as_doubles(m, row), to, mode, bool(saturates))
    if come.is_float() and to.is_float():
        return _shortened(m, row, to, mode, bool(saturates))
    if come.is_float():
        saturates = saturates is not False
    return converted(m, row, to, mode, bool(saturates))


def _as_doubles(m: Machine, row: Expr) -> Expr:
    """Return integers as doubles, the last bit of those that are too long for one telling of the bits behind it."""
    come = element_of(row)
    if come.bits <= 32:
        return cast(m, row, FP64)
    rest = m.b.tile("and_", row, constant((1 << LOST) - 1, come))
    first = m.b.tile("shr", row, constant(LOST, come))
    odd = m.b.tile("or_", first, constant(1, come))
    kept_bits = where(m, rest, CmpType.EQ, constant(0, come), first, odd)
    large = m.b.tile("mul", cast(m, kept_bits, FP64), constant(float(1 << LOST), FP64))
    limit, small = 1 << (64 - LOST - 1), cast(m, row, FP64)
    made = where(m, row, CmpType.LT, constant(limit, come), small, large)
    return where(m, row, CmpType.GT, constant(-limit, come), made, large) if come.is_signed_int() else made


def _shortened(m: Machine, row: Expr, to: DataType, mode: str, saturates: bool) -> Expr:
    come = element_of(row)
    if to.bits > come.bits or to == come:
        return cast(m, row, to)
    saturates = saturates and finite_limits(to)[1] < finite_limits(come)[1]
    row = cast(m, row, FP32) if to.bits == come.bits else row
    if saturates:
        row = where(m, row, CmpType.EQ, row, row, full(m, lanes_of(row), element_of(row), 0))
        row = _finite(m, row, to)
    return cast(m, row, to) if mode == "rint" or to.bits < 16 else _directed(m, row, to, mode)


def _directed(m: Machine, row: Expr, to: DataType, mode: str) -> Expr:
    """Return floats rounded to shorter ones: towards zero, and one step further where the mode says so."""
    bits, one, zero = UNSIGNED[to.get_byte()], constant(1, UNSIGNED[to.get_byte()]), constant(0.0, element_of(row))
    size = m.b.tile("abs", row)
    nearest = cast(m, size, to)
    steps = bitcast(m, nearest, bits)
    back = cast(m, nearest, element_of(row))
    down = where(m, back, CmpType.GT, size, m.b.tile("sub", steps, one), steps)
    up = m.b.tile("add", down, one)
    short, longer = (cast(m, bitcast(m, step, to), element_of(row)) for step in (down, up))
    if mode == "trunc":
        further = down
    elif mode in ("floor", "ceil"):
        further = where(m, row, CmpType.LT if mode == "floor" else CmpType.GT, zero, up, down)
    elif mode == "odd":
        last = m.b.tile("and_", down, one)
        further = where(m, last, CmpType.EQ, constant(0, bits), up, down)
    else:
        before, behind = (m.b.tile("sub", a, b) for a, b in ((size, short), (longer, size)))
        further = where(m, before, CmpType.GE, behind, up, down)
        infinite = constant(float("inf"), element_of(row))
        further = where(m, longer, CmpType.EQ, infinite, steps, further)  # from which everything is equally far
    signed = bitcast(m, where(m, size, CmpType.GT, short, further, down), to)  # what is no number is not between two
    signed = where(m, row, CmpType.LT, zero, m.b.tile("neg", signed), signed)
    return where(m, row, CmpType.EQ, zero, cast(m, row, to), signed)  # which keeps the sign of zero


@declare(
    "pto.vtrc",
    register("vm", "v", "rnd", False),
    example='(%x: v64xf32, %m: m32); %r = {op} %x, %m, "C" -> v64xf32',
    means="np.ceil(x)",
)
@elementwise
def _round(m: Machine, op: Op, row: Expr) -> Expr:
    """Floats rounded to integers, still floats."""
    made = converted(m, cast(m, row, dtypes.FP32), dtypes.FP32, mode_of(op, "Z"), None)
    return cast(m, made, element_of(row))


# halves


def _takes_upper(m: Machine, op: Op) -> bool:
    """Return which half an op means: a word, or the number 1."""
    numbers = [v for v in op.operands if isinstance(m.values[v], Number)]
    if not numbers:
        return is_upper(op)
    part = known(m.expr(numbers[0]))
    if part not in (0, 1):
        raise AttributeValueError(f"the part must be the constant 0 or 1, got {part}")
    return part == 1


@declare(
    "pto.vpack",
    register("un?|ui", "u", "part", False),
    widens=1 / 2,
    example='(%x: v64xi32); %r = {op} %x, "LOWER" -> v128xui16',
    means="np.concatenate([x, 0 * x])",
)
def _pack_lanes(m: Machine, op: Op, source: Vector) -> Expr:
    """The low parts of the elements in one half of the result; the other half is zero."""
    type_ = op.results[0].of(VReg)
    half = cast(m, masked(m, source.expr, mask_of(m, op)), type_.element.dtype)
    none = full(m, type_.lanes - lanes_of(half), type_.element.dtype, 0)
    return m.b.tile("concat", none, half) if _takes_upper(m, op) else m.b.tile("concat", half, none)


@declare(
    "pto.vsunpack vzunpack",
    replace(register("un?|ui", "u", "part", False), untyped=1),
    widens=2,
    example='(%x: v128xi16); %r = {op} %x, "LOWER" -> v64xi32',
    means={"vsunpack": "x[:64]", "vzunpack": 'x[:64].view("u2")'},
)
def _unpack(m: Machine, op: Op, source: Vector) -> Expr:
    """One half of the elements, made longer with copies of their sign or with zeros."""
    type_ = op.results[0].of(VReg)
    family = SIGNED if op.name == "pto.vsunpack" else UNSIGNED
    first = type_.lanes if _takes_upper(m, op) else 0
    half = every(m, bitcast(m, source.expr, family[source.element.nbytes]), 1, first, type_.lanes)
    return masked(m, cast(m, half, type_.element.dtype), mask_of(m, op))
