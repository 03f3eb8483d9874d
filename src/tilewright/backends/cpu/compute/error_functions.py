"""Error functions of doubles: polynomials around eight places, chosen lane by lane.

The error function is a sum of what it is at the nearest of eight places and a polynomial in the way from there. Where a
permutation of eight doubles is an instruction, the coefficients stay in registers; elsewhere they come from memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.doubles import ROUNDER
from tilewright.backends.cpu.compute.storage import through
from tilewright.native.llvm import F64, I64, PTR, Builder, Value, lanes, shuffled, vector
from tilewright.native.terms import Term, spelled

PLACES = 8
STEP = 0.796875
"""How far the places are apart, of which the first is zero."""
LAST = 5.94
"""From where on the error function is one."""
# erf at each place, and the coefficients of (erf(place + t) - erf(place)) / t, lowest first
ERF = (
    (
        0.0, 0.7402369841174793, 0.9757977205900914, 0.9992773915094418, 0.999993449849224, 0.9999999824694816,
        0.9999999999863626, 0.9999999999999969,
    ),
    (
        1.1283791670955126, 0.5979623254177844, 0.08898772635666956, 0.003718980702342969, 4.364708704085379e-05,
        1.4385472468110464e-07, 1.331467350427634e-10, 3.460783553314635e-14,
    ),
    (
        0.0, -0.47650122806729694, -0.14182418888094211, -0.008890688241538658, -0.00013912508994272176,
        -5.731711686512675e-07, -6.366078269234972e-10, -1.9304683256812733e-13,
    ),
    (
        -0.3761263890318375, 0.05382050227149003, 0.1210256252337778, 0.012929874150837918, 0.00028109178711466524,
        1.4745343418362447e-06, 1.9848052033036887e-09, 7.063569634867723e-13,
    ),
    (
        0.0, 0.1373896363153136, -0.04916756548118662, -0.012491677448744763, -0.0004016150057329984,
        -2.7464918279124688e-06, -4.532722330086984e-09, -1.9057247788897288e-12,
    ),
    (
        0.11283791670954639, -0.05993909725694995, -0.004963364575875884, 0.008066204315109968,
        0.0004277315961752601, 3.93486104818238e-06, 8.073389895403351e-09, 4.0402413150398376e-12,
    ),
    (
        0.0, -0.02071591364287899, 0.015748138225973533, -0.003096642577194949, -0.0003473674860822064,
        -4.493589508604971e-06, -1.1658239198753935e-08, -7.004130014271461e-12,
    ),
    (
        -0.02686617064470112, 0.018987783256459213, -0.005989273757549164, 0.00019459263772375471,
        0.0002145116757308303, 4.178598521480416e-06, 1.4003751782548092e-08, 1.0200870510933697e-11,
    ),
    (
        0.0, 0.0006564019462145075, -0.000988249787887746, 0.0005472667573816387, -9.650310140147635e-05,
        -3.199363842797516e-06, -1.4240665135019746e-08, -1.2724563812164208e-11,
    ),
    (
        0.005223977608389864, -0.0038083068054199374, 0.0015145861456893647, -0.0003285729238252722,
        2.664575999906145e-05, 2.0202647998182354e-06, 1.2407755074627458e-08, 1.3789639782200833e-11,
    ),
    (
        0.0, 0.0004902543830362996, -0.00030708543564612157, 5.9807124587289716e-05, 1.6942815953828798e-07,
        -1.041122521378692e-06, -9.333248376826927e-09, -1.312158367056316e-11,
    ),
    (
        -0.0008548323435674212, 0.0005521462084771625, -0.00015885647341821313, 2.77707961575487e-05,
        -4.458408258612062e-06, 4.2363349077409144e-07, 6.083201623028503e-09, 1.1051718959454206e-11,
    ),
    (
        0.0, -0.00014760295052324772, 8.872378475153253e-05, -2.0127366226032545e-05, 2.342938941351751e-06,
        -1.2357562518809215e-07, -3.4333465046256557e-09, -8.290561139090089e-12,
    ),
    (
        0.00012054904225044312, -5.9770321460200105e-05, 6.495223723166162e-07, 3.485934370335389e-06,
        -5.201786315978847e-07, 1.6006614370565164e-08, 1.667604461475118e-09, 5.553980457031151e-12,
    ),
    (
        0.0, 2.6200987206148947e-05, -1.1843900827533529e-05, 1.468761151027051e-06, -7.263795403957474e-08,
        7.200721548764441e-09, -6.868025411271276e-10, -3.3051807616991477e-12,
    ),
    (
        -1.4896396548293413e-05, 4.611293630398251e-06, 2.4289948101580813e-06, -8.980817779764792e-07,
        9.522361536475449e-08, -5.810593085031142e-09, 2.314119106979889e-10, 1.7822629903010888e-12,
    ),
    (
        0.0, -3.2738339600679632e-06, 8.841115574900427e-07, 7.862830527218328e-08, -2.7500718567355763e-08,
        1.996408202772777e-09, -5.6310022720386255e-11, -9.557314399377457e-13,
    ),
    (
        1.539657826093236e-06, -1.867584874874896e-07, -4.066529324505707e-07, 7.159135237480662e-08,
        -1.0556925792967816e-10, -2.790231822242549e-10, 5.86665868052019e-12, 3.9720390179297935e-13,
    ),
)  # fmt: skip


def erf(x: Term) -> Term:
    """Return the error function, within 1.5 units of the last place."""
    size = x.magnitude().at_most(LAST)
    rounded = size.fma(1.0 / STEP, ROUNDER)
    t = (rounded - ROUNDER).fma(-STEP, size)
    place = rounded.bits() & (PLACES - 1)
    first, *rest = (looked_up(f"erf.{number}", row, place) for number, row in enumerate(ERF))
    total = rest.pop()
    for coefficient in reversed(rest):
        total = total.fma(t, coefficient)
    return (size >= LAST).choose(x.like(1.0), t.fma(total, first)).signed_like(x)


def looked_up(name: str, row: Sequence[float], place: Term) -> Term:
    """Return one of eight doubles in each lane."""
    b, count = place.b, lanes(place.type)
    if b.module.scales and count in (PLACES, 2 * PLACES):
        return Term(b, _permuted(b, row, place.value))
    b.module.declare(f"@{name} = internal constant [{PLACES} x {F64}] [{', '.join(_listed(row))}]")
    pointers = vector(PTR, count)
    where = b.value(pointers, f"getelementptr {F64}, {PTR} @{name}, {place.value}")
    return Term(b, b.load(F64, where, 8) if pointers == PTR else through(b, where, vector(F64, count)))


def _permuted(b: Builder, row: Sequence[float], place: Value) -> Value:
    """Return the same where it is an instruction of AVX-512, for each eight lanes."""
    of, at, count = vector(F64, PLACES), vector(I64, PLACES), lanes(place.type)
    name = b.module.intrinsic("llvm.x86.avx512.permvar.df.512", of, of, at)
    table = Value(of, f"<{', '.join(_listed(row))}>")
    if count == PLACES:
        return b.call(of, name, table, place)
    low, high = (b.call(of, name, table, _some(b, place, first, PLACES)) for first in (0, PLACES))
    return shuffled(b, low, high, range(count))


def _some(b: Builder, value: Value, first: int, count: int) -> Value:
    """Return some neighbouring lanes of a vector."""
    return shuffled(b, value, Value(value.type, "poison"), range(first, first + count))


def _listed(row: Sequence[float]) -> list[str]:
    return [f"{F64} {spelled(F64, number)}" for number in row]
