"""The error function of floats where a vector is a table: polynomials around sixteen places, chosen lane by lane.

A permutation of sixteen floats is an instruction of AVX-512, and takes a lane's coefficients out of registers; half of
what two polynomials and an exponential take. Elsewhere they would come from memory, and those are faster.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.float_tables import looked_up
from tilewright.native.terms import Term

STEP = 131 / 512
"""About how far the places are apart, of which the first is zero."""
LAST = 3.96
"""From where on the error function is one."""
ROUNDER = 1.5 * 2**23
PLACES = (
    0.0, 0.25586778, 0.5117239, 0.76759434, 1.0234597, 1.2792681, 1.5351939, 1.7910011, 2.0468204, 2.3027234,
    2.5585315, 2.8144605, 3.0702174, 3.3260767, 3.5819361, 3.8377955,
)  # fmt: skip
"""Floats at which the error function is as good as a float."""
# the error function at each place, and the coefficients of (erf(place + t) - erf(place)) / t, lowest first; around zero
# of what that is less one
ERF = (
    (
        0.0, 0.28253713, 0.530742, 0.7223185, 0.8522124, 0.9295736, 0.9700758, 0.9886863, 0.9962041, 0.9988722,
        0.99970347, 0.99993116, 0.9999859, 0.99999744, 0.9999996, 0.99999994,
    ),
    (
        0.12837917, 1.0568724, 0.8684206, 0.6259913, 0.39586285, 0.21964455, 0.10688111, 0.045643106, 0.017099747,
        0.00561815, 0.0016200454, 0.00040956904, 9.092725e-05, 1.7699025e-05, 3.0223434e-06, 4.5276994e-07,
    ),
    (
        0.0, -0.2704195, -0.44439158, -0.48050737, -0.40514967, -0.28098428, -0.16408324, -0.081746854, -0.035000112,
        -0.012937045, -0.0041449363, -0.0011527153, -0.00027916612, -5.8868205e-05, -1.0825806e-05, -1.7376298e-06,
    ),
    (
        -0.37612236, -0.30615973, -0.13787116, 0.037221767, 0.14447868, 0.16642077, 0.13230726, 0.08239278,
        0.04206003, 0.01798764, 0.006529805, 0.0020261866, 0.0005410169, 0.00012460431, 2.4834906e-05, 4.2925035e-06,
    ),
    (
        0.0, 0.12929328, 0.18340392, 0.14588404, 0.061117418, -0.012785071, -0.046862688, -0.046533052, -0.031377908,
        -0.016398184, -0.0069719595, -0.00246722, -0.00073753303, -0.00018762317, -4.0876927e-05, -7.659363e-06,
    ),
    (
        0.11218107, 0.07818365, 0.0039997455, -0.055428233, -0.06795969, -0.04331712, -0.011065666, 0.008453957,
        0.012991973, 0.009699379, 0.0051941914, 0.0021866013, 0.00075257965, 0.00021586, 5.2251144e-05, 1.076016e-05,
    ),
    (
        0.0, -0.04034523, -0.049283344, -0.024646435, 0.0067900186, 0.021712115, 0.018022435, 0.0073006293,
        -0.0004964667, -0.0030491552, -0.0025499463, -0.0013818392, -0.00056839595, -0.0001875411, -5.0994295e-05,
        -1.1606727e-05,
    ),
)  # fmt: skip


def erf(x: Term) -> Term:
    """Return the error function, within 1.5 units of the last place."""
    size = x.magnitude().at_most(LAST)
    rounded = size.fma(1.0 / STEP, ROUNDER)  # its lowest bits say which place is nearest
    place, first, *rest = (looked_up(f"erf.f32.{at}", row, rounded.bits()) for at, row in enumerate((PLACES, *ERF)))
    t, total = size - place, rest.pop()
    for coefficient in reversed(rest):
        total = total.fma(t, coefficient)
    near = (rounded > ROUNDER).choose(first, size)
    return t.fma(total, near).signed_like(x)
