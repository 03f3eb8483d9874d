"""Traced lanes: elements being computed, several at once.

An op's NumPy meaning is its recipe: applied to lanes instead of arrays, every NumPy function in it emits the
instructions that compute it. Floating-point lanes are fp32 whatever they are stored as, but for doubles, and results
are rounded to the op's element type; integers wrap in their own width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cache
from typing import Any

from tilewright.backends.cpu.compute.reaches import Bounds, Reach, compared, is_exact, reach_of, stored_reach, within
from tilewright.backends.cpu.emit.llvm_types import compute_type, literal, repeated
from tilewright.backends.scalar_arithmetic import by_value, float_division, floor_divided, remainder
from tilewright.backends.traced import DERIVED, Traced, exact_exp, predicate
from tilewright.dtypes import BF16, BOOL, FP16, FP32, FP64, DataType
from tilewright.errors import InternalError
from tilewright.native.llvm import F32, F64, Builder, Value, element, lanes, vector
from tilewright.records import entity, mutable


@entity
class Lanes(Traced):
    """Elements of one type, in as many lanes as `value` has."""

    b: Builder
    value: Value
    element: DataType
    difference: tuple[Lanes, Lanes] | None = None
    """The floats whose difference these are: a reference's own are exact."""
    tanh_of: Lanes | None = None
    """The floats whose hyperbolic tangent these are."""
    shared: Shared | None = None
    """The one number in every lane, where all the elements of a row have it."""
    stored: Value | None = None
    """The same elements as they lie in memory, of floats that were narrow before or have been rounded already."""
    reach: Reach = None
    """The least and the largest that integers can be, where that is known; of floats, that they were such."""
    bounds: Bounds = None
    """What floats that are numbers lie between, where that is known."""

    @property
    def count(self) -> int:
        """How many elements there are."""
        return lanes(self.value.type)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape a reference would see."""
        return (self.count,)

    def like(self, number: Any) -> Lanes:
        """Return a number in every lane, of the same type."""
        reach = (int(number), int(number)) if self.element.is_int() else None
        return Lanes(self.b, literal(self.element, number, self.count), self.element, reach=reach)

    def emitter(self, name: str) -> Callable[..., Lanes]:
        """Return the instructions of a NumPy function."""
        found = _UFUNCS.get(name) or _mathematical().get(name) or _rare().get(name)
        if found is None:
            raise InternalError(f"no instructions for np.{name}")
        return found


@mutable
class Shared:
    """A number that all the elements of a row have; what is made of it alone is made once, ahead of the row's loop."""

    number: Lanes
    mark: int
    doubts: list[Value] | None = None
    """Where the way that the loop is emitted goes wrong; None: it may not, since there is no other."""
    made: dict[str, Lanes] = field(default_factory=dict[str, Lanes])

    def spread(self, name: str, make: Callable[[Lanes], Lanes], count: int) -> Lanes:
        """Return something made of the number in as many lanes as are computed together."""
        if name not in self.made:
            b = self.number.b
            with b.earlier(self.mark):
                single = make(self.number)
                self.made[name] = Lanes(b, b.splat(single.value, count), single.element)
        return self.made[name]


def _binary(floats: str, integers: str, unsigned: str = "") -> Callable[[Lanes, Lanes], Lanes]:
    def emit(a: Lanes, b: Lanes) -> Lanes:
        if b.element == BOOL != a.element:
            b = converted(b, a.element)
        name = floats if a.element.is_float() else unsigned if unsigned and a.element.is_unsigned_int() else integers
        reach = reach_of(name, a.reach, b.reach, a.element)
        return Lanes(a.b, a.b.op(name, a.value, b.value), a.element, reach=reach)

    return emit


def _compare(name: str, ordered: str = "o") -> Callable[[Lanes, Lanes], Lanes]:
    def emit(a: Lanes, b: Lanes) -> Lanes:
        text = f"{'fcmp' if a.element.is_float() else 'icmp'} {predicate(name, a, b, ordered)}"
        plain = Lanes(a.b, a.b.compare(text, a.value, b.value), BOOL, reach=compared(name, a.reach, b.reach))
        return by_value(emit, a, b, plain)

    return emit


def _extreme(name: str) -> Callable[[Lanes, Lanes], Lanes]:
    def emit(a: Lanes, b: Lanes) -> Lanes:
        if a.element.is_float():
            from tilewright.backends.cpu.compute import vectormath  # which sums and products do without

            function = vectormath.maximum if name == "max" else vectormath.minimum
            return Lanes(
                a.b, function(a.b, a.value, b.value), a.element, bounds=_bounds(max if name == "max" else min, a, b)
            )
        sign = "s" if a.element.is_signed_int() else "u"
        return Lanes(a.b, a.b.intrinsic(f"llvm.{sign}{name}", a.value, b.value), a.element)

    return emit


def _bounds(choose: Callable[[float, float], float], a: Lanes, b: Lanes) -> Bounds:
    from tilewright.backends.cpu.compute.reaches import chosen
    from tilewright.native.terms import Term

    known = (chosen(choose, Term(x.b, x.value).number, y.bounds) for x, y in ((a, b), (b, a)))
    return next(filter(None, known), None)


def _function(emitter: Callable[..., Value]) -> Callable[..., Lanes]:
    def emit(*args: Lanes) -> Lanes:
        from tilewright.backends.cpu.compute.typed_functions import of_type  # adding and multiplying do without

        b, element = args[0].b, args[0].element
        return Lanes(b, of_type(emitter, element)(b, *(a.value for a in args)), element)

    return emit


def _absolute(a: Lanes) -> Lanes:
    if a.element.is_float():
        return Lanes(a.b, a.b.intrinsic("llvm.fabs", a.value), a.element)
    return _where(a < 0, -a, a) if a.element.is_signed_int() else a


def _negative(a: Lanes) -> Lanes:
    if a.element.is_float():
        return Lanes(a.b, a.b.value(a.value.type, f"fneg {a.value}"), a.element)
    return a.like(0) - a


def _copysign(a: Lanes, b: Lanes) -> Lanes:
    from tilewright.native.terms import Term

    return Lanes(a.b, Term(a.b, a.value).signed_like(Term(b.b, b.value)).value, a.element)


def _subtract(a: Lanes, b: Lanes) -> Lanes:
    plain = _binary("fsub", "sub")(a, b)
    return replace(plain, difference=(a, b)) if a.element.is_float() and a.element != FP64 else plain


def _divide(a: Lanes, b: Lanes) -> Lanes:
    """Return quotients; a divisor that a whole row shares is inverted once, from where its inverse is normal."""
    shared = b.shared
    if shared is None or a.element != FP32:
        return _quotient(a, b)

    from tilewright.backends.cpu.compute import vectormath

    def scale(x: Lanes) -> Lanes:
        return Lanes(x.b, vectormath.scale_to_invert(x.b, x.value), x.element)

    def inverse(x: Lanes) -> Lanes:
        if shared.doubts is None:
            return _quotient(x.like(1), x * scale(x))
        shared.doubts.append(vectormath.is_hard_to_invert(x.b, x.value))
        return _quotient(x.like(1), x)

    quotient = a * shared.spread("inverse", inverse, a.count)
    return quotient * shared.spread("scale", scale, a.count) if shared.doubts is None else quotient


_divided = _binary("fdiv", "sdiv", "udiv")


def _quotient(a: Lanes, b: Lanes) -> Lanes:
    """Return quotients, of integers without their fractions: no divisor is one that machines trap at."""
    if a.element.is_int():
        from tilewright.backends.cpu.compute.quotients import by_floats  # few kernels divide integers

        if value := by_floats(a.b, a.value, b.value, b.reach, a.element.is_signed_int()):
            return Lanes(a.b, value, a.element)
    return _divided(a, b)


def _tanh(x: Lanes) -> Lanes:
    from tilewright.backends.cpu.compute import vectormath

    plain = _function(vectormath.tanh)(x)
    return replace(plain, tanh_of=x) if x.element == FP32 else plain


def _add(a: Lanes, b: Lanes) -> Lanes:
    """Return sums; of one and a hyperbolic tangent, with the digits that it has no room for, where that is quicker."""
    for x, y in ((a, b), (b, a)):
        if x.tanh_of is None or not x.b.module.scales:
            continue
        from tilewright.backends.cpu.compute import vectormath
        from tilewright.native.terms import Term

        if Term(y.b, y.value).number == 1.0:
            return Lanes(x.b, vectormath.one_and_tanh(Term(x.b, x.tanh_of.value)).value, x.element)
    return _binary("fadd", "add")(a, b)


def _exp(x: Lanes) -> Lanes:
    """Return the exponential; of a difference, with what its rounding lost."""
    from tilewright.backends.cpu.compute import vectormath

    plain = _function(vectormath.exp)(x)
    if x.difference is None:
        return plain
    return exact_exp(plain, x, x.difference)


def _floor_divide(a: Lanes, b: Lanes) -> Lanes:
    """Return quotients rounded down; of integers the reference has made the divisor safe from zero."""
    if a.element.is_float():
        return float_division("floordiv", a, replace(b, shared=None))
    return floor_divided(_quotient, a, b, a.element)


def _fmod(a: Lanes, b: Lanes) -> Lanes:
    if a.element.is_float():
        from tilewright.backends.cpu.compute import vectormath

        return _function(vectormath.fmod)(a, b)
    return remainder(lambda x, y: x - _quotient(x, y) * y, a, b, a.element)


def fused(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Return a * b + c; of floats rounded once, where the machine has no such instruction through doubles."""
    if not a.element.is_float():
        return a * b + c
    if a.b.module.fused:
        return Lanes(a.b, a.b.intrinsic("llvm.fma", a.value, b.value, c.value), a.element)
    if a.element == FP64:
        from tilewright.backends.cpu.compute.library import called  # few machines have no such instruction

        return Lanes(a.b, called("fma")(a.b, a.value, b.value, c.value), a.element)
    wide = vector("double", a.count)
    x, y, z = (a.b.convert("fpext", lane.value, wide) for lane in (a, b, c))
    total = a.b.op("fadd", a.b.op("fmul", x, y), z)
    return Lanes(a.b, a.b.convert("fptrunc", total, a.value.type), a.element)


def _where(condition: Lanes, then: Any, other: Any) -> Lanes:
    lane = then if isinstance(then, Lanes) else other
    chosen = [v if isinstance(v, Lanes) else lane.like(v) for v in (then, other)]
    if condition.reach == (0, 0):
        return chosen[1]
    return Lanes(lane.b, lane.b.select(condition.value, chosen[0].value, chosen[1].value), chosen[0].element)


_UFUNCS: dict[str, Callable[..., Lanes]] = {
    **DERIVED,
    "where": _where,
    "add": _add,
    "subtract": _subtract,
    "multiply": _binary("fmul", "mul"),
    "divide": _divide,
    "floor_divide": _floor_divide,
    "fmod": _fmod,
    "maximum": _extreme("max"),
    "minimum": _extreme("min"),
    "negative": _negative,
    "absolute": _absolute,
    "exp": _exp,
    "tanh": _tanh,
    "fused": fused,
    "copysign": _copysign,
    "bitwise_and": _binary("", "and"),
    "bitwise_or": _binary("", "or"),
    "bitwise_xor": _binary("", "xor"),
    "left_shift": _binary("", "shl"),
    "right_shift": _binary("", "ashr", "lshr"),
    "equal": _compare("eq"),
    "not_equal": _compare("ne", ordered="u"),
    "less": _compare("lt"),
    "less_equal": _compare("le"),
    "greater": _compare("gt"),
    "greater_equal": _compare("ge"),
}
"""The instructions of each NumPy function that many references use."""


@cache
def _mathematical() -> Mapping[str, Callable[..., Lanes]]:
    """Return the instructions of functions that are written out."""
    from tilewright.backends.cpu.compute import vectormath

    return {
        "log": _function(vectormath.log),
        "sqrt": _function(vectormath.sqrt),
        "erf": _function(vectormath.erf),
        "floor": _function(vectormath.floor),
        "ceil": _function(vectormath.ceil),
        "trunc": _function(vectormath.trunc),
        "rint": _function(vectormath.round_half_even),
    }


@cache
def _rare() -> Mapping[str, Callable[..., Lanes]]:
    """Return the instructions of functions that few kernels have."""
    from tilewright.backends.cpu.compute import doubles, trigonometry

    own = {"sin": _function(trigonometry.sin), "cos": _function(trigonometry.cos)}
    return own | {emitter.name: _function(emitter) for emitter in doubles.FUNCTIONS}


def combine(name: str) -> Callable[[Lanes, Lanes], Lanes]:
    """Return the instructions of a NumPy function of two operands, by name."""
    return _UFUNCS[name]


def rounded(lane: Lanes, dtype: DataType) -> Lanes:
    """Return lanes rounded to an element type, still in the type they are computed in."""
    if dtype not in (FP16, BF16):
        known = lane if lane.element == dtype else Lanes(lane.b, lane.value, dtype)
        value, reach = _precise(lane, dtype), within(lane.reach, dtype)
        return Lanes(lane.b, value, dtype, reach=reach, bounds=known.bounds, tanh_of=known.tanh_of)
    if lane.element == dtype and lane.stored is not None:
        return lane
    if lane.element in (FP32, dtype) and is_exact(lane.reach, dtype):
        return Lanes(lane.b, lane.value, dtype, reach=lane.reach)
    return from_memory(lane.b, to_memory(Lanes(lane.b, lane.value, dtype)), dtype)


def _precise(lane: Lanes, dtype: DataType) -> Value:
    """Return floats in the precision that a type is computed in."""
    have, wanted = element(lane.value.type), compute_type(dtype)
    if have == wanted or not {have, wanted} <= {F32, F64}:  # narrow formats are their bits
        return lane.value
    return lane.b.convert("fpext" if wanted == F64 else "fptrunc", lane.value, vector(wanted, lane.count))


def from_memory(b: Builder, value: Value, dtype: DataType) -> Lanes:
    """Return loaded elements as lanes to compute with."""
    if dtype in (FP16, BF16):
        from tilewright.backends.cpu.compute import narrow  # which kernels in floats do without

        return Lanes(b, narrow.to_f32(b, value), dtype, stored=value)
    if dtype == BOOL:
        return Lanes(b, b.compare("icmp ne", value, repeated("i8", "0", lanes(value.type))), dtype)
    if dtype.bits == 4 and dtype.is_int():
        return Lanes(b, _low_half(b, value, dtype), dtype, reach=stored_reach(dtype))
    return Lanes(b, value, dtype, reach=stored_reach(dtype))


def _low_half(b: Builder, value: Value, dtype: DataType) -> Value:
    """Return integers of four bits from the bytes they lie in, whose other half may hold anything."""
    four = repeated("i8", "4", lanes(value.type))
    return b.op("ashr" if dtype.is_signed_int() else "lshr", b.op("shl", value, four), four)


def to_memory(lane: Lanes) -> Value:
    """Return lanes as they lie in memory."""
    if lane.stored is not None:
        return lane.stored
    if lane.element in (FP16, BF16):
        from tilewright.backends.cpu.compute import narrow

        return narrow.from_f32(lane.b, lane.value, "half" if lane.element == FP16 else "bfloat")
    if lane.element == BOOL:
        return lane.b.convert("zext", lane.value, vector("i8", lane.count))
    return lane.value


def converted(lane: Lanes, dtype: DataType) -> Lanes:
    """Return lanes in another element type where no value is lost: integers widen or wrap, or become floats."""
    b, source, wide = lane.b, lane.element, vector(compute_type(dtype), lane.count)
    if source == dtype or (source.is_float() and dtype.is_float()):
        return Lanes(b, _precise(lane, dtype), dtype)
    if dtype.is_float():
        name = "sitofp" if source.is_signed_int() else "uitofp"
        return Lanes(b, b.convert(name, lane.value, wide), dtype, reach=lane.reach)
    reach = within(lane.reach, dtype)
    if compute_type(source) == compute_type(dtype):
        return Lanes(b, lane.value, dtype, reach=reach)
    narrower = int(element(wide)[1:]) < int(compute_type(source)[1:])
    name = "trunc" if narrower else "sext" if source.is_signed_int() else "zext"
    return Lanes(b, b.convert(name, lane.value, wide), dtype, reach=reach)
