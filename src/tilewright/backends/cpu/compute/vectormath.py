"""Vector math: the functions of `f32` lanes as LLVM IR that calls no library.

Each function is an `Emitter`: `exp(builder, x)` emits instructions and returns their result, for a `float` or for a
vector of any number of them. Its declaration holds its error bound in units in the last place, over all floats; NaN,
infinities, signed zeros and denormals come out as in C. Polynomials are minimax fits of ours, weighted for relative
error, with coefficients rounded to `f32`. Rounding to integers and `fmod` need SSE4.1 or NEON to stay in line.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.native.llvm import F32, F64, I32, I64, Builder, Value, i64, lanes, mangled, vector
from tilewright.native.terms import Term
from tilewright.records import record

INF = float("inf")
MANTISSA, ONE = 0x007FFFFF, 0x3F800000

LN2_HIGH, LN2_LOW = 0.693145751953125, 1.4286068e-06  # 15 bits, so that a multiple of it is exact; and the rest
LN2, LOG2_E = 0.6931472, 1.442695
ROUNDER = 1.5 * 2**23  # adding it rounds to an integer, which the low bits then hold

EXP = (1.0, 1.0, 0.49999994, 0.16666521, 0.041668393, 0.0083687445, 0.0013814531)  # exp(r) for |r| <= ln(2)/2
# ((1 - exp(-2r)) / 2 - r) / r^2 for |r| <= ln(2)/4
LESS = (-1.0, 0.66666174, -0.3333376, 0.13386478, -0.04442398)
# (log(1 + f) - f + f^2/2) / f^3 for 1 + f between the roots of 1/2 and of 2
LOG = (0.3333333, -0.2500082, 0.20001227, -0.1662336, 0.1420177, -0.13160168, 0.12761487, -0.07634423)
LOG_OF_KINDS = 0x03530421  # from the last: NaN, one that signals, 0: -inf, 1: as is, -inf: NaN, inf, x < 0: NaN, x > 0
TANH = (-0.33333293, 0.13331541, -0.053738628, 0.02061601, -0.0056647905)  # (tanh(x) - x) / x^3, in x^2, to 0.625
# erf(x) / x - 1, in x^2, up to 1; and log(1 - erf(x)) from there to 4
ERF = (0.12837917, -0.37612626, 0.112835854, -0.026853811, 0.0051883273, -0.0008010191, 7.8538535e-05)
ERFC = (-0.00019439835, -1.1279728, -0.6360242, -0.105778806, 0.02376161, -0.0037426623, 0.00036167493, -1.5953046e-05)


@record
class Emitter:
    """A function of lanes, its result within `ulp` units in the last place of the exact one.

    `unfused` is the bound on targets whose multiply-adds round twice.
    """

    body: Callable[..., Term]
    ulp: float
    unfused: float

    @property
    def name(self) -> str:
        """The function's name."""
        return self.body.__name__

    def __call__(self, b: Builder, *operands: Value) -> Value:
        """Emit the function and return its result."""
        return self.body(*(Term(b, operand) for operand in operands)).value


EMITTERS: dict[str, Emitter] = {}


def accuracy(ulp: float, unfused: float | None = None) -> Callable[[Callable[..., Term]], Emitter]:
    """Declare a function of lanes with its error bound, and another for targets without fused multiply-add."""

    def declare(body: Callable[..., Term]) -> Emitter:
        return EMITTERS.setdefault(body.__name__, Emitter(body, ulp, ulp if unfused is None else unfused))

    return declare


def reduced(x: Term) -> tuple[Term, Term]:
    """Return integers n and the smallest r with x = n ln(2) + r; for |x| below 2^21."""
    rounded = x.fma(LOG2_E, ROUNDER)
    n = rounded - ROUNDER
    return rounded.bits() - rounded.like(ROUNDER).bits(), n.fma(-LN2_LOW, n.fma(-LN2_HIGH, x))


def scale_to_invert(b: Builder, x: Value) -> Value:
    """Return the power of two by which to multiply a float for its inverse to be a normal number: mostly one."""
    number = Term(b, x)
    size = number.magnitude()
    large = (size >= 2.0**126).choose(number.like(2.0**-64), 1.0)
    return (size < 2.0**-126).choose(number.like(2.0**64), large).value


def is_hard_to_invert(b: Builder, x: Value) -> Value:
    """Return whether a float is no number, or its inverse no normal one."""
    least, end = 1 << 23, 253 << 23  # the bits of 2^-126 and 2^126
    return b.compare("icmp uge", ((Term(b, x).bits() & 0x7FFFFFFF) - least).value, Value(I32, str(end - least)))


def power_of_two(n: Term) -> Term:
    """Return 2^n for integers of normal results."""
    return ((n << 23) + ONE).to("bitcast", "float")


def normal_exp(x: Term) -> Term:
    """Return e to the power of lanes for which that is a normal float."""
    n, r = reduced(x)
    return r.horner(EXP) * power_of_two(n)


@accuracy(ulp=1, unfused=1.25)
def exp(x: Term) -> Term:
    """Return e to the power of each lane; results below the normal floats round once, to denormals and zero."""
    return exp_of_sum(x)


def exp_of_sum(x: Term, rest: Term | float = 0.0) -> Term:
    """Return `exp` of a float and of the digits that it has no room for."""
    if x.b.module.scales and lanes(x.type) == 16:
        return _exp_in_512_bits(x, rest)
    n, r = reduced(x.at_most(89.0).at_least(-104.0))
    return scaled((r + rest if isinstance(rest, Term) else r).horner(EXP), n)


def _exp_in_512_bits(x: Term, rest: Term | float) -> Term:
    """Return `exp` where scaling by a power of two is an instruction, which overflows as the result does."""
    n = x.fma(LOG2_E, ROUNDER) - ROUNDER
    r = n.fma(-LN2_LOW, n.fma(-LN2_HIGH, x))
    return scaled_by_floats(below_two(r + rest if isinstance(rest, Term) else r).horner(EXP), n)


def below_two(x: Term) -> Term:
    """Return what is left by a multiple of ln(2), which is small, as it is, and anything else as some float below two.

    Far from zero nothing sensible is left, and of infinity NaN. Without its highest exponent bit that is a float of
    which the polynomial is positive: what counts is the multiple, and NaN in it.
    """
    return (x.bits() & ~(1 << 30)).to("bitcast", "float")


def scaled_by_floats(x: Term, n: Term) -> Term:
    """Return sixteen lanes times 2^n."""
    name = x.b.module.intrinsic("llvm.x86.avx512.mask.scalef.ps.512", x.type, x.type, x.type, x.type, "i16", "i32")
    every, as_set = Value("i16", "-1"), Value(I32, "4")
    return Term(x.b, x.b.call(x.type, name, x.value, n.value, x.like(0.0).value, every, as_set))


def one_and_tanh(x: Term) -> Term:
    """Return one more than the hyperbolic tangent, 2 / (1 + exp(-2x)), which keeps the digits that a sum would lose."""
    if not (x.b.module.scales and lanes(x.type) == 16):
        return x.like(2.0) / (exp_of_sum(x * -2.0) + 1.0)
    n = x.fma(-2.0 * LOG2_E, ROUNDER) - ROUNDER
    r = n.fma(0.5 * LN2_LOW, n.fma(0.5 * LN2_HIGH, x))  # all of it is -1/2 of what it is for the exponential
    power = below_two(r).horner([c * (-2.0) ** k for k, c in enumerate(EXP)])
    return x.like(2.0) / (scaled_by_floats(power, n) + 1.0)


def scaled(x: Term, n: Term) -> Term:
    """Return x times 2^n, rounded once, for |n| up to 252."""
    if x.b.module.scales:
        name = x.b.module.intrinsic(f"llvm.ldexp.{mangled(x.type)}.{mangled(n.type)}", x.type, x.type, n.type)
        return Term(x.b, x.b.call(x.type, name, x.value, n.value))
    half = n >> 1  # 2^n itself may be too large or too small for a float
    return x * power_of_two(half) * power_of_two(n - half)


@accuracy(ulp=1)
def log(x: Term) -> Term:
    """Return the natural logarithm: NaN below zero, minus infinity at either zero."""
    return log_and_more(x, 0.0)


def log_and_more(x: Term, more: Term | float) -> Term:
    """Return the natural logarithm and something small more."""
    n, f = parts_of_log(x)
    high = n * LN2_HIGH
    total = high + f
    lost = f - (total - high)
    lost = lost + more if isinstance(more, Term) else lost
    square = f * f
    rest = (square * f).fma(f.horner(LOG), n.fma(LN2_LOW, square.fma(-0.5, lost)))
    return outside_of_log(x, total + rest)


def log_of_more(f: Term) -> Term:
    """Return what the logarithm of 1 + f is beside f."""
    square = f * f
    return (square * f).fma(f.horner(LOG), square * -0.5)


def parts_of_log(x: Term) -> tuple[Term, Term]:
    """Return n and f of which x is 2^n (1 + f), where it is positive and finite.

    1 + f is between the roots of 1/2 and of 2.
    """
    if x.b.module.scales and lanes(x.type) == 16:
        return _parts_in_512_bits(x)
    smallest, root_half = 2.0**-126, 0x3F3504F3
    denormal = x < smallest
    shifted = denormal.choose(x * 2.0**23, x).bits() - root_half
    f = ((shifted & MANTISSA) + root_half).to("bitcast", "float") - 1.0
    return (shifted >> 23).to("sitofp", "float") - denormal.choose(x.like(23.0), 0.0), f


def _parts_in_512_bits(x: Term) -> tuple[Term, Term]:
    """Return the same where an instruction each gives exponents and fractions, of denormals too."""
    every, nearest = Value("i16", "-1"), Value(I32, "4")
    exponents, fractions = (f"llvm.x86.avx512.mask.get{part}.ps.512" for part in ("exp", "mant"))
    x.b.module.intrinsic(exponents, x.type, x.type, x.type, "i16", "i32")
    x.b.module.intrinsic(fractions, x.type, x.type, "i32", x.type, "i16", "i32")
    zero, from_one = x.like(0.0).value, Value(I32, "0")
    n = Term(x.b, x.b.call(x.type, exponents, x.value, zero, every, nearest))
    m = Term(x.b, x.b.call(x.type, fractions, x.value, from_one, zero, every, nearest))
    is_high = m >= 1.4142135
    return is_high.choose(n + 1.0, n), is_high.choose(m * 0.5, m) - 1.0


def outside_of_log(x: Term, result: Term) -> Term:
    """Return `result` where x is positive and finite, and what the logarithm is elsewhere."""
    if x.b.module.scales and x.type == vector(F32, 16):
        return _outside_in_512_bits(x, result)
    finite = (x < INF).choose(result, x)
    positive = (x < 0.0).choose(x.like(float("nan")), finite)
    return (x.magnitude() > 0.0).choose(positive, x - INF)


def _outside_in_512_bits(x: Term, result: Term) -> Term:
    """Return the same by the instruction that answers each kind of float: what of NaN, of zero, of what is negative."""
    name = x.b.module.intrinsic(
        "llvm.x86.avx512.mask.fixupimm.ps.512", x.type, x.type, x.type, "<16 x i32>", "i32", "i16", "i32"
    )
    kinds = Term(x.b, x.value).bits().like(LOG_OF_KINDS).value
    numbers = Value(I32, "0"), Value("i16", "-1"), Value(I32, "4")
    return Term(x.b, x.b.call(x.type, name, result.value, x.value, kinds, *numbers))


@accuracy(ulp=2, unfused=1.5)
def tanh(x: Term) -> Term:
    """Return the hyperbolic tangent: (1 - e) / (1 + e) with e = exp(-2|x|), both from the same 1 - exp(-2r).

    The more multiples of ln(2) are taken away, the less do their digits matter: one float has enough of them.
    """
    size = x.magnitude()
    if not x.b.module.fused:
        return _tanh_in_two_parts(size).signed_like(x)
    size = size.at_most(10.0)
    rounded = size.fma(-2.0 * LOG2_E, ROUNDER)
    r = (rounded - ROUNDER).fma(0.5 * LN2, size)
    less, exponent = (r * r).fma(r.horner(LESS), r), rounded.bits() << 23
    scale, twice = ((exponent + one).to("bitcast", "float") for one in (ONE, ONE + (1 << 23)))
    above, below = twice.fma(less, x.like(1.0) - scale), (twice * -1.0).fma(less, scale + 1.0)
    return (above / below).signed_like(x)


def _tanh_in_two_parts(size: Term) -> Term:
    """Return the hyperbolic tangent of what is not negative: near zero a polynomial, beyond it from e^2x."""
    square = size * size
    inner = (square * size).fma(square.horner(TANH), size)
    outer = size.like(1.0) - size.like(2.0) / (normal_exp((size * 2.0).at_most(20.0)) + 1.0)
    return (size > 0.625).choose(outer, inner)


@accuracy(ulp=1.5)
def erf(x: Term) -> Term:
    """Return the error function: up to one a polynomial, beyond it one less the exponential of another."""
    if x.b.module.scales:
        from tilewright.backends.cpu.compute import float_erf  # few kernels have it

        return float_erf.erf(x)
    size = x.magnitude()
    inner = size.fma((size * size).horner(ERF), size)
    outer = x.like(1.0) - normal_exp(size.at_most(4.0).horner(ERFC))
    return (size > 1.0).choose(outer, inner).signed_like(x)


@accuracy(ulp=0.5)
def sqrt(x: Term) -> Term:
    """Return the square root, correctly rounded."""
    return x.intrinsic("llvm.sqrt")


@accuracy(ulp=1.5)
def rsqrt(x: Term) -> Term:
    """Return one over the square root, each of the two correctly rounded."""
    return x.like(1.0) / x.intrinsic("llvm.sqrt")


@accuracy(ulp=0.5)
def recip(x: Term) -> Term:
    """Return one over each lane, correctly rounded."""
    return x.like(1.0) / x


@accuracy(ulp=0)
def maximum(x: Term, y: Term) -> Term:
    """Return the larger of two, NaN where either is; of two zeros, the second."""
    for limit, other in ((x.number, y), (y.number, x)):
        if limit:  # a zero meets zeros of the other sign
            return other.at_least(limit)
    return x.is_nan().choose(x, _extreme("max", x, y))


def _extreme(name: str, x: Term, y: Term) -> Term:
    """Return x where it is beyond y, else y: one instruction of AVX-512's, of which LLVM would make two beside others.

    The largest of each column of 128 x 768 floats take a Zen 5 3.4 us, and 6.3 by comparisons.
    """
    kind = {vector(F32, 16): "ps", vector(F64, 8): "pd"}.get(x.type)
    if kind is None or not x.b.module.scales:
        return (x > y if name == "max" else x < y).choose(x, y)
    full = x.b.module.intrinsic(f"llvm.x86.avx512.{name}.{kind}.512", x.type, x.type, x.type, I32)
    return Term(x.b, x.b.call(x.type, full, x.value, y.value, Value(I32, "4")))


@accuracy(ulp=0)
def minimum(x: Term, y: Term) -> Term:
    """Return the smaller of two, NaN where either is; of two zeros, the second."""
    for limit, other in ((x.number, y), (y.number, x)):
        if limit:
            return other.at_most(limit)
    return x.is_nan().choose(x, _extreme("min", x, y))


@accuracy(ulp=0)
def round_half_even(x: Term) -> Term:
    """Return the nearest integer, of two the even one."""
    return x.intrinsic("llvm.roundeven")


@accuracy(ulp=0)
def round_half_away(x: Term) -> Term:
    """Return the nearest integer, of two the one farther from zero."""
    return x.intrinsic("llvm.round")


@accuracy(ulp=0)
def floor(x: Term) -> Term:
    """Return the largest integer not above each lane."""
    return x.intrinsic("llvm.floor")


@accuracy(ulp=0)
def ceil(x: Term) -> Term:
    """Return the smallest integer not below each lane."""
    return x.intrinsic("llvm.ceil")


@accuracy(ulp=0)
def trunc(x: Term) -> Term:
    """Return each lane without its fraction."""
    return x.intrinsic("llvm.trunc")


@accuracy(ulp=0)
def fmod(x: Term, y: Term) -> Term:
    """Return the remainder of x / y with the sign of x, exactly; by long division, sixteen bits of quotient a turn.

    In double precision a quotient below 2^18 times 24 bits of divisor is exact, and so is what it leaves. Operands
    whose exponents are within fifteen take one turn, any others as many as the farthest pair needs.
    """
    b, divisor = x.b, y.magnitude().to("fpext", "double")
    start = (x.magnitude() + (x - x)).to("fpext", "double")  # x - x is NaN where x has no remainder
    gap = exponent(start) - exponent(divisor)
    loop = b.open_loop(i64(0), turns(gap), i64(1), [start.value])
    (rest,) = b.close_loop(loop, [divided(Term(b, loop.values[0]), divisor).value])
    return y.is_nan().choose(y, Term(b, rest).to("fptrunc", "float").signed_like(x))


def exponent(x: Term) -> Term:
    """Return the biased exponents of doubles that are not negative."""
    return x.bits() >> 52


def turns(gap: Term) -> Value:
    """Return how many turns of long division the widest gap of exponents takes; none below zero."""
    small = gap.to("trunc", I32).value
    widest = small if lanes(small.type) == 1 else gap.b.intrinsic("llvm.vector.reduce.smax", small, returns=I32)
    return ((Term(gap.b, widest) + 16) >> 4).to("sext", I64).value


def divided(rest: Term, divisor: Term) -> Term:
    """Return what a turn of long division leaves, below the divisor times the power of two it took."""
    excess = (exponent(rest) - exponent(divisor) - 16).at_least(0)
    scaled = divisor * ((excess + 1023) << 52).to("bitcast", "double")
    left = rest - (rest / scaled).intrinsic("llvm.trunc") * scaled
    return (rest < divisor).choose(rest, (left < 0.0).choose(left + scaled, left))
