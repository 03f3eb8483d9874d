"""Elements: what an op's NumPy meaning is written as, a tile or a scalar at a time.

Floats are computed in fp32 whatever they are stored as, doubles in fp64. Where the quick function of CUDA's library is
further from the exact result than the language promises, the function of doubles is called.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilewright.backends.cuda.ttir.extents import spread
from tilewright.backends.cuda.ttir.text import F32, F64, Text, Value
from tilewright.backends.cuda.ttir.values import working
from tilewright.backends.scalar_arithmetic import by_value, float_division, floor_divided, remainder
from tilewright.backends.traced import DERIVED, Traced, exact_exp, predicate
from tilewright.dtypes import BOOL, FP32, FP64, DataType, round_scalar
from tilewright.errors import InternalError, UnsupportedFeatureError
from tilewright.records import entity


@entity
class Elements(Traced):
    """Elements of one type; those of floats are computed in fp32, or in fp64 on the way to it or for good."""

    t: Text
    value: Value
    element: DataType
    difference: tuple[Elements, Elements] | None = None
    """The floats whose difference these are: a reference's own are exact."""
    narrow: Value | None = None
    """The elements before they were repeated, where fewer of them were."""
    is_rough: bool = False
    """Whether what is made of them is rounded to half precision."""
    is_summed: bool = False
    """Whether nothing but sums of rows is made of what is computed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape a reference would see."""
        return self.value.shape

    def like(self, number: Any) -> Elements:
        """Return a number in every element, of the same type."""
        return self.of(literal(self.t, number, self.value))

    def emitter(self, name: str) -> Callable[..., Elements]:
        """Return what writes a NumPy function."""
        found = UFUNCS.get(name)
        if found is None:
            raise UnsupportedFeatureError(f"no CUDA recipe for np.{name} yet")
        return found

    def of(self, value: Value, element: DataType | None = None) -> Elements:
        """Return other elements of the same kernel, of the same type unless another is said."""
        return replace(self, value=value, element=element or self.element, difference=None, narrow=None)


def literal(t: Text, number: Any, like: Value) -> Value:
    """Return a number in every element of a value's shape and type, to the last bit."""
    if like.element == "i1":
        return t.constant("true" if number else "false", "i1", like.shape)
    if like.element[0] == "i":
        bits = int(like.element[1:])
        wrapped = int(number) & ((1 << bits) - 1)
        return t.integer(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped, like.element, like.shape)
    return t.constant(_hexadecimal(float(number), like.element), like.element, like.shape)


def _hexadecimal(number: float, element: str) -> str:
    if element == F64:
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if element != F32:
        raise InternalError(f"numbers of {element} are computed in f32")
    return f"0x{struct.unpack('<I', struct.pack('<f', round_scalar(number, FP32)))[0]:08X}"


Written = Callable[..., Elements]


def _binary(floats: str, integers: str, unsigned: str = "") -> Written:
    def write(a: Elements, b: Elements) -> Elements:
        if b.element == BOOL != a.element:
            b = b.of(b.t.convert("arith.extui", b.value, a.value.element), a.element)
        name = floats if a.element.is_float() else unsigned if unsigned and a.element.is_unsigned_int() else integers
        return a.of(a.t.simple(f"arith.{name}", a.value, b.value))

    return write


def _compare(name: str, ordered: str = "o") -> Written:
    def write(a: Elements, b: Elements) -> Elements:
        kind = f"{'cmpf' if a.element.is_float() else 'cmpi'} {predicate(name, a, b, ordered)}"
        return by_value(write, a, b, a.of(a.t.compare(kind, a.value, b.value), BOOL))

    return write


def _named(name: str, double: str = "") -> Written:
    """Return an operation of Triton's dialects that is right for floats of 32 bits, the library's for doubles."""
    symbol = double or f"__nv_{name.partition('.')[2]}"

    def write(a: Elements) -> Elements:
        if a.value.element == F64:
            return a.of(a.t.library(symbol, a.value))
        return a.of(a.t.simple(name, a.value))

    return write


def _single(symbol: str) -> Written:
    """Return a function of the library for floats of 32 bits, and the one of that name for doubles."""

    def write(*args: Elements) -> Elements:
        of_type = symbol.removesuffix("f") if args[0].value.element == F64 else symbol
        return args[0].of(args[0].t.library(of_type, *(a.value for a in args)))

    return write


def doubled(symbol: str) -> Written:
    """Return a function of the library for doubles, rounded once to 32 bits where floats are asked for."""

    def write(*args: Elements) -> Elements:
        if args[0].is_rough:
            return _single(f"{symbol}f")(*args)
        wide = [_widened(a) for a in args]
        return _narrowed(wide[0].of(wide[0].t.library(symbol, *(a.value for a in wide))))

    return write


def _widened(a: Elements) -> Elements:
    return a if a.value.element == F64 else a.of(a.t.convert("arith.extf", a.value, F64))


def _narrowed(a: Elements) -> Elements:
    return a if a.element == FP64 else a.of(a.t.convert("arith.truncf", a.value, F32))


def _subtract(a: Elements, b: Elements) -> Elements:
    plain = _binary("subf", "subi")(a, b)
    return replace(plain, difference=(a, b)) if a.element.is_float() else plain


def _divide(a: Elements, b: Elements) -> Elements:
    if a.value.element == F32 and b.narrow is not None:
        return _divided_by_few(a, b.of(b.narrow))
    if a.value.element == F32 and a.is_rough:
        return a.of(a.t.simple("arith.divf", a.value, b.value))
    return _divide_exactly(a, b)


def _divide_exactly(a: Elements, b: Elements) -> Elements:
    if not a.element.is_float():
        return _binary("", "divsi", "divui")(a, b)
    name = "tt.precise_divf" if a.value.element == F32 else "arith.divf"
    return a.of(a.t.simple(name, a.value, b.value))


def _divided_by_few(a: Elements, b: Elements) -> Elements:
    """Return floats divided by fewer: by the inverse of each of those, and then of what that left.

    Both are scaled, so that inverses are neither large nor small; a quotient that is zero or infinite is right at once.
    """
    size = _absolute(b)
    scale = _where(size > 2.0**64, b.like(2.0**-64), _where(size < 2.0**-64, b.like(2.0**64), 1))
    scaled = b * scale
    share = _divide_exactly(b.like(1), scaled)
    against = _where(_absolute(scaled) == math.inf, b.like(-1), -scaled)
    share, against, scale = (a.of(spread(a.t, each.value, a.shape)) for each in (share, against, scale))
    wanted = a * scale
    plain = wanted * share
    better = _fused(_fused(plain, against, wanted), share, plain)
    return _where(plain + plain == plain, plain, better)


def _floor_divide(a: Elements, b: Elements) -> Elements:
    if a.element.is_float():
        return float_division("floordiv", *(replace(each, narrow=None, is_rough=False) for each in (a, b)))
    return floor_divided(_divide_exactly, a, b, a.element)


def _fmod(a: Elements, b: Elements) -> Elements:
    if a.element.is_float():
        return _single("__nv_fmodf")(a, b)
    return remainder(_binary("", "remsi", "remui"), a, b, a.element)


def _extreme(integers: str, unsigned: str, predicate: str) -> Written:
    """Return the larger or smaller of two, NaN where either is; of two zeros the second."""
    plain = _binary("", integers, unsigned)

    def write(a: Elements, b: Elements) -> Elements:
        if not a.element.is_float():
            return plain(a, b)
        is_first = _compare(predicate)(a, b) | (a != a)
        return a.of(a.t.select(is_first.value, a.value, b.value))

    return write


def _absolute(a: Elements) -> Elements:
    if a.element.is_float():
        return a.of(a.t.simple("math.absf", a.value))
    return a.of(a.t.simple("math.absi", a.value)) if a.element.is_signed_int() else a


def _negative(a: Elements) -> Elements:
    return a.like(-0.0) - a if a.element.is_float() else a.like(0) - a


def _copysign(a: Elements, b: Elements) -> Elements:
    t, element = a.t, a.value.element
    bits = 64 if element == F64 else 32
    size, sign = (t.bits(x.value, f"i{bits}") for x in (a, b))
    size = t.simple("arith.andi", size, t.integer((1 << bits - 1) - 1, size.element, size.shape))
    sign = t.simple("arith.andi", sign, t.integer(-(1 << bits - 1), sign.element, sign.shape))
    return a.of(t.bits(t.simple("arith.ori", size, sign), element))


EXP = (
    "{ .reg .f32 part, whole; fma.rn.f32 part, $1, 0f3BBB989D, 0f3F000000; cvt.sat.f32.f32 part, part; "
    "fma.rm.f32 whole, part, 0f437C0000, 0f4B400001; add.rn.f32 part, whole, 0fCB40007F; neg.f32 part, part; "
    "fma.rn.f32 part, $1, 0f3FB8AA3B, part; fma.rn.f32 part, $1, 0f32A57060, part; ex2.approx.ftz.f32 part, part; "
    "shl.b32 whole, whole, 23; mul.rn.f32 $0, part, whole; }"
)
"""What `__nv_expf` becomes: a kernel that needs nothing of the library is compiled in two thirds of the time."""


QUICK_EXP = (
    "{ .reg .f32 whole, part; mul.rn.f32 whole, $1, 0f3FB8AA3B; fma.rn.f32 part, whole, 0fBF317218, $1; "
    "ex2.approx.ftz.f32 whole, whole; fma.rn.f32 $0, whole, part, whole; }"
)
"""The same in four instructions instead of eight, for sums: zero where it is subnormal, not a number where it is
infinite, and off by 3e-9 times its exponent, 2e-7 at most, which is within what an exponential and a sum promise."""


def _exp(x: Elements) -> Elements:
    """Return the exponential; of a difference, with what its rounding lost."""
    if x.value.element == F64:
        return x.of(x.t.library("__nv_exp", x.value))
    if x.is_rough:
        return x.of(x.t.simple("math.exp", x.value))
    if x.is_summed:
        quick = x.t.machine(QUICK_EXP, x.value)
        x.t.quick[quick] = x.value
        return x.of(quick)
    plain = x.of(x.t.machine(EXP, x.value))
    if x.difference is None:
        return plain
    return exact_exp(plain, x, x.difference)


def _where(condition: Elements, then: Any, other: Any) -> Elements:
    known = then if isinstance(then, Elements) else other
    chosen = [v if isinstance(v, Elements) else known.like(v) for v in (then, other)]
    return chosen[0].of(condition.t.select(condition.value, chosen[0].value, chosen[1].value))


def _between(*given: Elements) -> Elements:
    """Return the number that is so far between two, counted from the nearer one."""
    start, end, weight = (_widened(each) for each in given)
    apart = end - start
    return _narrowed(_where(_absolute(weight) < 0.5, start + weight * apart, end - apart * (1 - weight)))


def _fused(a: Elements, b: Elements, c: Elements) -> Elements:
    """Return a * b + c; of floats rounded once."""
    return a.of(a.t.simple("math.fma", a.value, b.value, c.value)) if a.element.is_float() else a * b + c


UFUNCS: dict[str, Written] = {
    **DERIVED,
    "where": _where,
    "add": _binary("addf", "addi"),
    "subtract": _subtract,
    "multiply": _binary("mulf", "muli"),
    "divide": _divide,
    "floor_divide": _floor_divide,
    "fmod": _fmod,
    "maximum": _extreme("maxsi", "maxui", "gt"),
    "minimum": _extreme("minsi", "minui", "lt"),
    "negative": _negative,
    "absolute": _absolute,
    "exp": _exp,
    "log": _named("math.log"),
    "log2": _named("math.log2"),
    "log1p": _single("__nv_log1pf"),
    "sqrt": _named("tt.precise_sqrt", "__nv_sqrt"),
    "sin": _named("math.sin"),
    "cos": _named("math.cos"),
    "tanh": _single("__nv_tanhf"),
    "erf": _named("math.erf"),
    "erfc": doubled("__nv_erfc"),
    "exp2": doubled("__nv_exp2"),
    "expm1": doubled("__nv_expm1"),
    "log10": doubled("__nv_log10"),
    "sinh": doubled("__nv_sinh"),
    "cosh": doubled("__nv_cosh"),
    "arcsin": doubled("__nv_asin"),
    "arccos": doubled("__nv_acos"),
    "arctan": doubled("__nv_atan"),
    "arcsinh": doubled("__nv_asinh"),
    "arccosh": doubled("__nv_acosh"),
    "arctanh": doubled("__nv_atanh"),
    "power": doubled("__nv_pow"),
    "arctan2": doubled("__nv_atan2"),
    "floor": _named("math.floor"),
    "ceil": _named("math.ceil"),
    "trunc": _single("__nv_truncf"),
    "rint": _single("__nv_rintf"),
    "copysign": _copysign,
    "between": _between,
    "fused": _fused,
    "bitwise_and": _binary("", "andi"),
    "bitwise_or": _binary("", "ori"),
    "bitwise_xor": _binary("", "xori"),
    "left_shift": _binary("", "shli"),
    "right_shift": _binary("", "shrsi", "shrui"),
    "equal": _compare("eq"),
    "not_equal": _compare("ne", ordered="u"),
    "less": _compare("lt"),
    "less_equal": _compare("le"),
    "greater": _compare("gt"),
    "greater_equal": _compare("ge"),
}
"""What each NumPy function that references use is written as."""

FOLDS: dict[str, Written] = {
    **{name: UFUNCS[name] for name in ("add", "multiply")},
    "maximum": _binary("maximumf", "maxsi", "maxui"),
    "minimum": _binary("minimumf", "minsi", "minui"),
    "bitwise_or": UFUNCS["bitwise_or"],
}
"""What elements are folded with, in whatever order: of two zeros, too, the larger or smaller one counts."""


def computed(t: Text, value: Value, dtype: DataType) -> Elements:
    """Return elements as they are computed with: half floats as fp32."""
    if value.element in ("f16", "bf16"):
        value = t.convert("arith.extf", value, F32)
    return Elements(t, value, working(dtype))
