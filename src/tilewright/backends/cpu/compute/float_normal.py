"""The normal distribution of floats where a vector is a table: polynomials at sixteen places, chosen lane by lane.

How likely a normally distributed number is to lie beyond t is exp(-t^2 / 2) times a function that falls from one half
to about 0.4 / t. That one is a sum of what it is at one of sixteen places and a polynomial in the way from there: four
places between any two powers of two of 1 + t, whose bits say which. So the tail keeps all of its digits.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.float_tables import looked_up
from tilewright.backends.cpu.compute.vectormath import exp_of_sum
from tilewright.native.terms import Term

END = 14.9
"""From where on nothing of the distribution is left that a float could hold."""
PLACES = (
    1.2499188, 1.7499583, 2.2501478, 2.7500734, 3.4999094, 4.4994736, 5.4995956, 6.500472, 8.000624, 9.998721,
    11.999951, 14.000925, 0.0, 0.37503716, 0.62500024, 0.8749129,
)  # fmt: skip
"""Floats at which the function is as good as a float: those between 1 and 3 first, those below 1 last."""
BESIDE = (
    0.23076929, 0.18523479, 0.15364407, 0.13072184, 0.106347576, 0.084812514, 0.07034757, 0.060011502, 0.049118828,
    0.03951165, 0.033019103, 0.028350806, 0.5, 0.3795949, 0.32335612, 0.279784,
)  # fmt: skip
"""The function there."""
# the coefficients of what it changes by on the way from there, divided by that way, lowest first
CHANGES = (
    (
        -0.110499404, -0.07478914, -0.05322041, -0.039447628, -0.0267354, -0.017330613, -0.012059092, -0.008839185,
        -0.005961021, -0.003876303, -0.002714649, -0.002004772, -0.3989423, -0.25658008, -0.19684462, -0.15415566,
    ),
    (
        0.046327006, 0.027178459, 0.016945139, 0.011118981, 0.006388049, 0.0034169399, 0.002013721, 0.0012763118,
        0.00071347266, 0.00037678934, 0.00022172331, 0.00014107171, 0.2499999, 0.1416839, 0.10016409, 0.072455615,
    ),
    (
        -0.01753108, -0.009075854, -0.0050303973, -0.0029565175, -0.0014591715, -0.0006520376, -0.0003281401,
        -0.00018084986, -8.425663e-05, -3.629551e-05, -1.7992934e-05, -9.8790415e-06, -0.132976, -0.06781426,
        -0.044747245, -0.030254377,
    ),
    (
        0.0061034225, 0.0028239316, 0.0014064588, 0.0007470663, 0.000320166, 0.00012074899, 5.2260868e-05,
        2.5171728e-05, 9.82419e-06, 3.4659479e-06, 1.4509667e-06, 6.885403e-07, 0.062417526, 0.029062675,
        0.018049216, 0.011496391,
    ),
    (
        -0.0019969977, -0.000832553, -0.000375294, -0.0001812862, -6.877166e-05, -2.1994738e-05, -8.215957e-06,
        -3.4675154e-06, -1.1535211e-06, -3.3250706e-07, -1.17393505e-07, -4.8107374e-08, -0.025944097, -0.01141595,
        -0.0067109154, -0.004048866,
    ),
    (
        0.0006091328, 0.00023094109, 9.500149e-05, 4.2016563e-05, 1.4054638e-05, 3.855726e-06, 1.2538495e-06,
        4.6688297e-07, 1.3125907e-07, 3.119063e-08, 9.349668e-09, 3.3229088e-09, 0.007974065, 0.004143178,
        0.0023163937, 0.0013296962,
    ),
)  # fmt: skip


def times_normal(x: Term) -> Term:
    """Return x times how likely a normally distributed number is to be at most x, within 4 units of the last place."""
    size = x.magnitude().at_most(END)
    beside, square = _beside(size), size * size
    rest = size.fma(size, square * -1.0)
    e = exp_of_sum(square * -0.5, rest * -0.5)
    return (x < 0.0).choose(x * beside * e, (size * beside * -1.0).fma(e, x))


def _beside(size: Term) -> Term:
    place = (size + 1.0).bits().shifted_down(21)
    way = size - looked_up("normal.place", PLACES, place)
    total, *rest = (looked_up(f"normal.{at}", row, place) for at, row in reversed([*enumerate((BESIDE, *CHANGES))]))
    for coefficient in rest:
        total = total.fma(way, coefficient)
    return total
