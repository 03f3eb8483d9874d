"""Trigonometry: sine and cosine of `f32` lanes, for every float there is.

An angle is reduced to [-pi/4, pi/4] and a quadrant in double precision: pi/2 in two parts, the first of 33 bits, so
that its multiples are exact below `HUGE`. Larger angles take a branch first, to an equal angle within a turn. A float
is m 2^e with an integer m below 2^24; how much of a turn 2^e makes up is a table by exponent, 96 bits to an entry, and
the 64-bit product of the two drops whole turns by overflowing. What is left is right to 2^-64 of a turn, far below the
2^-31 that the float nearest to a multiple of pi/2 keeps away from it. As a double it is still right enough: errors stay
below 1.7 ulp but for a handful of huge angles next to such a multiple.
"""

from __future__ import annotations

import math

from tilewright.backends.cpu.compute.storage import through
from tilewright.backends.cpu.compute.vectormath import MANTISSA, accuracy
from tilewright.native.llvm import I32, I64, PTR, Builder, Module, Value, lanes, mangled, vector
from tilewright.native.terms import Term

HUGE = 2.0**20
FIRST = 127 + 20  # the biased exponent of HUGE
TURNS_PER_RADIAN = 0x28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E4107F9458EAF7AEF158  # 1 / (2 pi), times 2^256
ROUNDER = 1.5 * 2**52  # adding it rounds to an integer, which the low bits then hold
QUARTER_HIGH, QUARTER_LOW = 1.5707963267341256, 6.077100506506192e-11  # pi / 2

SIN = (-0.16666655, 0.008332099, -0.0001950363)  # (sin(r) - r) / r^3, in r^2, for |r| <= pi/4
COS = (1.0, -0.5, 0.041666653, -0.0013887652, 2.4463501e-05)  # cos(r), in r^2


@accuracy(ulp=2.5)
def sin(x: Term) -> Term:
    """Return the sine of angles in radians, of whatever size; NaN for infinities."""
    r, quadrant = reduced(x)
    return wave(r, quadrant)


@accuracy(ulp=2.5)
def cos(x: Term) -> Term:
    """Return the cosine of angles in radians, of whatever size; NaN for infinities."""
    r, quadrant = reduced(x)
    return wave(r, quadrant + 1)


def wave(r: Term, quadrant: Term) -> Term:
    """Return the sine of r plus a number of quarter turns."""
    square = r * r
    sine = (square * r).fma(square.horner(SIN), r).signed_like(r)  # of -0 the sum alone would be 0
    size = ((quadrant << 31) < 0).choose(square.horner(COS), sine)
    return (size.bits() ^ ((quadrant & 2) << 30)).to("bitcast", "float")


def reduced(x: Term) -> tuple[Term, Term]:
    """Return the angle within an eighth of a turn of zero, and the quarter turns taken off it."""
    angle = within_a_turn(x)
    rounded = angle.fma(2 / math.pi, ROUNDER)
    n = rounded - ROUNDER
    r = n.fma(-QUARTER_LOW, n.fma(-QUARTER_HIGH, angle))
    return r.to("fptrunc", "float"), rounded.bits().to("trunc", I32)


def within_a_turn(x: Term) -> Term:
    """Return the angles in double precision, by way of a function out of line when some lane's is huge."""
    b, angle = x.b, x.to("fpext", "double")
    before, huge, after = b.block, b.label("huge"), b.label("angle")
    b.do(f"br i1 {(x.magnitude() >= HUGE).any().ref}, label %{huge}, label %{after}")
    b.begin(huge)
    smaller = b.call(angle.type, turn_function(b.module, x.type), x.value)
    b.do(f"br label %{after}")
    b.begin(after)
    phi = f"phi {angle.type} [ {angle.value.ref}, %{before} ], [ {smaller.ref}, %{huge} ]"
    return Term(b, b.value(angle.type, phi))


def turn_function(module: Module, type_: str) -> str:
    """Define, once, the function from any angles to equal ones within half a turn of zero; return its name."""
    name, returns, param = f"within_a_turn.{mangled(type_)}", vector("double", lanes(type_)), Value(type_, "%x")
    if name not in module.defined:
        b = Builder(module, name, [param], returns=returns, attrs="noinline cold")
        x = Term(b, param)
        b.finish((x.magnitude() >= HUGE).choose(remainder_of_turn(x), x.to("fpext", "double")).value)
    return name


def remainder_of_turn(x: Term) -> Term:
    """Return huge angles less their whole turns."""
    bits = x.bits()
    row = (((bits >> 23) & 255) - FIRST).at_least(0).to("zext", I64)
    m = ((bits & MANTISSA) | (MANTISSA + 1)).to("zext", I64)
    turn = m * looked_up("turn.high", row) + (m * looked_up("turn.low", row)).shifted_down(32)
    angle = turn.to("sitofp", "double") * (2 * math.pi / 2**64)
    return (angle + (x - x).to("fpext", "double")) * x.like(1.0).signed_like(x).to("fpext", "double")


def looked_up(table: str, row: Term) -> Term:
    """Return entries of one of the two tables of parts of a turn."""
    b = row.b
    words = [entry >> 32 if table.endswith("high") else entry & 0xFFFFFFFF for entry in parts_of_turn()]
    type_ = f"[{len(words)} x {I64}]"
    b.module.declare(f"@{table} = internal constant {type_} [{', '.join(f'{I64} {word}' for word in words)}]")
    pointers = vector(PTR, lanes(row.type))
    where = b.value(pointers, f"getelementptr {I64}, {PTR} @{table}, {row.value}")
    return Term(b, b.load(I64, where, 8) if pointers == PTR else through(b, where, row.type))


def parts_of_turn() -> list[int]:
    """Return 2^e of a turn, times 2^96, per exponent from `HUGE` to infinity; whole turns are dropped."""
    return [((TURNS_PER_RADIAN << e) >> (256 - 96 + 3)) % 2**96 for e in range(256 - FIRST)]
