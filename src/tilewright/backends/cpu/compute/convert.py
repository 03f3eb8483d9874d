"""Conversion: elements and scalars in another type, exactly as `ops.convert` says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.backends.cpu.compute import formats
from tilewright.backends.cpu.compute.copies import tile_type
from tilewright.backends.cpu.compute.nodes import mapped
from tilewright.backends.cpu.compute.reaches import is_exact
from tilewright.backends.cpu.compute.traced import Lanes, converted, from_memory, rounded, to_memory
from tilewright.backends.cpu.emit.function import HANDLERS, FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import compute_type
from tilewright.backends.cpu.emit.values import Scalar, Tile
from tilewright.core.enums import RoundMode
from tilewright.core.expr import Call
from tilewright.dtypes import BF16, BOOL, FP16, FP32, FP64, INT64, UINT32, DataType
from tilewright.native.llvm import F32, I32, I64, Builder, Value, element, lanes, mangled, vector
from tilewright.native.terms import Term
from tilewright.ops.convert import round_mode


@lowers("tile.cast")
def _cast(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_, source = tile_type(call), bound["x"]
    mode = round_mode(bound["mode"])
    if e.step.multiplied:
        from tilewright.backends.cpu.compute.factors import are_for_tiles, as_factors  # few kernels cast for products

        if are_for_tiles(e.program.target, type_):
            return mapped(e, type_, source.valid, as_factors, [source])

    def function(lane: Lanes) -> Lanes:
        return cast(lane, type_.dtype, mode)

    return mapped(e, type_, source.valid, function, [source])


def _cast_scalar(e: FunctionEmitter, call: Call, dtype: DataType, given: Scalar) -> Scalar:
    lane = Lanes(e.b, given.value, given.dtype)
    if dtype.is_float() and given.dtype.is_int():
        return Scalar(_through_double(lane, dtype).value, dtype)
    if given.dtype.is_float() and dtype.is_float():
        return Scalar(_narrowed(lane, dtype).value, dtype)
    if given.dtype.is_float() and dtype.is_int():
        mode: Any = call.kwargs["mode"]
        return Scalar(_to_integer(lane, dtype, round_mode(mode)).value, dtype)
    return Scalar(as_scalar(lane, dtype), dtype)


HANDLERS.scalars["cast"] = _cast_scalar


def cast(lane: Lanes, dtype: DataType, mode: RoundMode) -> Lanes:
    """Return lanes as `cast` converts them: to integers they are rounded by `mode` and saturate, NaN becoming zero."""
    if lane.element.is_float() and dtype.is_int():
        return _to_integer(_as_floats(lane), dtype, mode)
    return as_element(lane, dtype)


def as_element(lane: Lanes, dtype: DataType) -> Lanes:
    """Return lanes rounded to an element type: floats to the nearest, even on ties; integers wrap."""
    source = lane.element
    if source == dtype and not _is_scalar(lane):
        return lane
    lane = _as_floats(lane)
    if dtype == BOOL:
        return lane != 0
    if dtype.is_float():
        return _to_float(lane, dtype)
    if source.is_float():
        return _wrapped(_truncated(lane), dtype)
    return _wrapped(lane, dtype)


def as_scalar(lane: Lanes, dtype: DataType) -> Value:
    """Return a number rounded to an element type as scalars hold it: one of a format is the float it stands for."""
    return lane.value if lane.element == dtype else _as_floats(as_element(lane, dtype)).value


def to_elements(dtype: DataType) -> Callable[[Lanes], Lanes]:
    """Return the function that rounds lanes to an element type."""

    def function(lane: Lanes) -> Lanes:
        return as_element(lane, dtype)

    return function


def number_of(b: Builder, raw: Value, dtype: DataType) -> Lanes:
    """Return a loaded element as the number a scalar holds."""
    return _as_floats(from_memory(b, raw, dtype))


def bits_of(lane: Lanes) -> Value:
    """Return lanes as they lie in memory, wherever they come from."""
    if _is_scalar(lane):
        return formats.from_f32(lane.b, lane.value, lane.element)
    return to_memory(lane)


def _is_scalar(lane: Lanes) -> bool:
    """Return whether a number of a format is held as the float that it stands for, as scalars are."""
    return formats.is_tabled(lane.element) and element(lane.value.type) == F32


def _as_floats(lane: Lanes) -> Lanes:
    """Return lanes of a format as the floats they stand for; others are what they are."""
    if not formats.is_tabled(lane.element) or element(lane.value.type) == F32:
        return lane
    return Lanes(lane.b, formats.to_f32(lane.b, lane.value, lane.element), FP32)


def _to_float(lane: Lanes, dtype: DataType) -> Lanes:
    if dtype == FP64:
        return converted(lane, FP64)
    if lane.element == FP64:
        return (
            _narrowed(lane, dtype)
            if not formats.is_tabled(dtype)
            else _tabled(_odd_double(lane.b, lane.value, dtype), dtype)
        )
    is_small = lane.element.bits <= 16 or is_exact(lane.reach, dtype)
    exact = lane.element.is_float() or is_small or dtype in (FP16, FP32)
    floats = converted(lane, FP32) if exact else _odd_integers(lane)
    if formats.is_tabled(dtype):
        return _tabled(floats, dtype)
    if dtype == BF16 and lane.element.is_int() and not exact:
        from tilewright.backends.cpu.compute.narrow import bfloat_bits  # few kernels convert long integers

        return from_memory(lane.b, bfloat_bits(Term(lane.b, floats.value), is_number=True).value, BF16)
    return rounded(floats, dtype)


def _tabled(floats: Lanes, dtype: DataType) -> Lanes:
    return Lanes(floats.b, formats.from_f32(floats.b, floats.value, dtype), dtype)


def _narrowed(lane: Lanes, dtype: DataType) -> Lanes:
    """Return floats of any type rounded to another, still as floats; doubles once, too."""
    if lane.element == FP64 and dtype not in (FP32, FP64):
        lane = _odd_double(lane.b, lane.value, dtype)
    if formats.is_tabled(dtype):
        return Lanes(lane.b, formats.to_f32(lane.b, formats.from_f32(lane.b, lane.value, dtype), dtype), dtype)
    return rounded(lane, dtype)


def _through_double(lane: Lanes, dtype: DataType) -> Lanes:
    """Return an integer scalar as the nearest float."""
    if dtype in (FP32, FP64):
        return converted(lane, dtype)
    return _narrowed(_odd(_doubles(lane)), dtype)


def _doubles(lane: Lanes) -> Term:
    """Return integers as doubles; one of more bits than those have is odd in the last, as for `_odd`."""
    number, is_signed = Term(lane.b, lane.value), lane.element.is_signed_int()
    if lane.element.bits == 64:
        low = number & 0x7FF
        odd = (number - low) | (((low + 0x7FF) >> 11) << 11)
        high = (number >> 53) + 1 if is_signed else number.shifted_down(52)
        number = high.compare("", "ugt", 1).choose(odd, number)
    return number.to("sitofp" if is_signed else "uitofp", "double")


def _odd_integers(lane: Lanes) -> Lanes:
    """Return integers as floats that round to at most eight bits as the integers do.

    Of 32 bits the lower eight or nine decide that at most by not being zero, where there are nine above: one bit says
    so as well, and floats have room for it and all above.
    """
    if lane.element.bits != 32:
        return _odd(_doubles(lane))
    number, is_signed = Term(lane.b, lane.value), lane.element.is_signed_int()
    last = 1 << 7 if is_signed else 1 << 8
    lower = 2 * last - 1
    more = (number & lower).compare("", "ne", 0).choose(number.like(last), 0)
    size = (number + (last << 9), last << 10) if is_signed else (number, last << 9)
    short = size[0].compare("", "ugt", size[1]).choose((number & ~lower) | more, number)
    return Lanes(lane.b, short.to("sitofp" if is_signed else "uitofp", F32).value, FP32)


def _odd_double(b: Builder, value: Value, dtype: DataType) -> Lanes:
    """Return doubles as floats that round to fewer bits as the doubles do.

    The last bit that a normal float has room for says whether there were others. Formats whose smallest number is not
    small for a float round all that is no normal one to zero.
    """
    wide = Term(b, value)
    if dtype not in (FP16, *formats.LAYOUTS):
        return _odd(wide)
    bits, last = wide.bits(), 1 << 29
    more = (bits & (last - 1)).compare("", "ne", 0).choose(bits | last, bits)
    finite = (more & ~(last - 1)).to("bitcast", "double")
    return Lanes(b, wide.is_nan().choose(wide, finite).to("fptrunc", F32).value, FP32)


def _odd(wide: Term) -> Lanes:
    """Return doubles as floats, an inexact one with its last bit set, so that rounding again rounds once."""
    nearest = wide.to("fptrunc", F32)
    back = nearest.to("fpext", "double")
    inexact = Term(wide.b, wide.b.compare("fcmp one", wide.value, back.value)).to("zext", I32)
    above = (back.magnitude() > wide.magnitude()).to("zext", I32)
    return Lanes(wide.b, ((nearest.bits() - above) | inexact).to("bitcast", F32).value, FP32)


def _wrapped(lane: Lanes, dtype: DataType) -> Lanes:
    """Return integers in another width, what does not fit dropped."""
    if lane.element == BOOL:
        return Lanes(lane.b, lane.b.convert("zext", lane.value, vector(compute_type(dtype), lane.count)), dtype)
    result = converted(lane, dtype)
    if dtype.bits == 4:
        low = Term(lane.b, result.value) << 4
        return Lanes(lane.b, (low >> 4 if dtype.is_signed_int() else low.shifted_down(4)).value, dtype)
    return result


def _truncated(lane: Lanes) -> Lanes:
    """Return floats without fractions as 64-bit integers; what those cannot hold is the smallest one, NaN zero."""
    b, x = lane.b, Term(lane.b, lane.value)
    held = x.magnitude().compare("olt", "slt", 2.0**63)
    number = Term(b, _saturated(lane, "fptosi", I64))
    kept = Term(b, b.op("or", held.value, x.is_nan().value))
    return Lanes(b, kept.choose(number, number.like(-(1 << 63))).value, INT64)


def _saturated(lane: Lanes, name: str, type_: str) -> Value:
    """Emit integers from floats, the nearest there is; NaN is zero.

    Vectors are converted and then mended, since LLVM saturates lane by lane: 4096² floats take a Zen 5 3.0 ms so, and
    8.8 with its intrinsic.
    """
    whole = vector(type_, lane.count)
    if lane.count > 1:
        x = Term(lane.b, lane.value)
        return _mended(x, x.to(name, type_), name).value
    full = lane.b.module.intrinsic(
        f"llvm.{name}.sat.{mangled(whole)}.{mangled(lane.value.type)}", whole, lane.value.type
    )
    return lane.b.call(whole, full, lane.value)


def _mended(x: Term, number: Term, name: str) -> Term:
    """Return the integers that floats were converted to; those of floats beyond the limits are at them."""
    bits = int(element(number.type)[1:])
    if name == "fptoui":
        number = x.compare("oge", "uge", 2.0**bits).choose(number.like(-1), number)
        return x.compare("oge", "uge", 0.0).choose(number, number.like(0))  # NaN is not more
    number = x.compare("oge", "sge", 2.0 ** (bits - 1)).choose(number.like((1 << (bits - 1)) - 1), number)
    number = x.compare("olt", "slt", -(2.0 ** (bits - 1))).choose(number.like(-(1 << (bits - 1))), number)
    return x.is_nan().choose(number.like(0), number)


def _to_integer(lane: Lanes, dtype: DataType, mode: RoundMode) -> Lanes:
    x = Term(lane.b, lane.value)
    are_exact = dtype.bits <= 16 or (lane.element == FP64 and dtype.bits <= 32 and lane.count > 1)
    if are_exact and dtype != BOOL:
        return Lanes(lane.b, _narrow_integer(x, lane.bounds, dtype, mode).value, dtype)
    name, kind = "fptoui" if dtype.is_unsigned_int() else "fptosi", compute_type(dtype)
    if lane.count > 1:
        return Lanes(lane.b, _mended(x, _rounded_to(x, mode, name, kind), name).value, dtype)
    whole = Lanes(lane.b, _ROUNDINGS[mode](x).value, lane.element)
    return Lanes(lane.b, _saturated(whole, name, kind), dtype)


def _narrow_integer(x: Term, bounds: tuple[float, float] | None, dtype: DataType, mode: RoundMode) -> Term:
    """Return floats as integers of few bits, whose limits are such floats, the nearest there is; NaN is zero.

    They are cut as floats, those that may be beyond the limits: LLVM converts to fewer than 32 bits lane by lane.
    """
    (low, high), (least, most) = map(float, dtype.limits), bounds or (-math.inf, math.inf)
    cut = x if least >= low else (x > low).choose(x, low)  # NaN is not more
    cut = cut if most <= high else (cut < high).choose(cut, high)
    number = _rounded_to(cut, mode, "fptoui" if dtype == UINT32 else "fptosi", I32)
    whole = x.is_nan().choose(number.like(0), number)
    return whole if dtype.bits == 32 else whole.to("trunc", compute_type(dtype))


def _rounded_to(x: Term, mode: RoundMode, name: str, kind: str) -> Term:
    """Return floats as integers of some kind, rounded by a mode; those beyond its limits are anything.

    What cuts fractions off needs none to be cut off before.
    """
    if mode in (RoundMode.none, RoundMode.rint) and name == "fptosi":  # as the processor converts
        type_ = vector(kind, lanes(x.type))
        nearest = f"llvm.lrint.{mangled(type_)}.{mangled(x.type)}"
        return Term(x.b, x.b.call(type_, x.b.module.intrinsic(nearest, type_, x.type), x.value))
    if mode is RoundMode.round:
        half = 0.5 - (2.0**-25 if element(x.type) == F32 else 2.0**-54)  # half itself takes the one below it up
        return (x + x.like(half).signed_like(x)).to(name, kind)
    if mode is RoundMode.odd:
        floor = x.intrinsic("llvm.floor")
        cut = Term(x.b, x.b.compare("fcmp one", floor.value, x.value)).to("zext", kind)
        return floor.to(name, kind) | cut
    return (x if mode is RoundMode.trunc else _ROUNDINGS[mode](x)).to(name, kind)


def _odd_integer(x: Term) -> Term:
    """Return floats without fractions, those that had one at an odd number."""
    b, whole = x.b, x.intrinsic("llvm.trunc")
    half = whole * 0.5
    even = b.compare("fcmp oeq", half.intrinsic("llvm.trunc").value, half.value)
    cut = Term(b, b.op("and", b.compare("fcmp one", whole.value, x.value), even))
    return cut.choose(whole + x.like(1.0).signed_like(x), whole)


def _intrinsic(name: str) -> Callable[[Term], Term]:
    return lambda x: x.intrinsic(name)


_ROUNDINGS: dict[RoundMode, Callable[[Term], Term]] = {
    RoundMode.none: _intrinsic("llvm.roundeven"),
    RoundMode.rint: _intrinsic("llvm.roundeven"),
    RoundMode.round: _intrinsic("llvm.round"),
    RoundMode.floor: _intrinsic("llvm.floor"),
    RoundMode.ceil: _intrinsic("llvm.ceil"),
    RoundMode.trunc: _intrinsic("llvm.trunc"),
    RoundMode.odd: _odd_integer,
}
