"""Unsaid: the ops that PTO text cannot say with the same bits, why, and what says nearly the same."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.op import Kind, Op
from tilewright.records import record


@record
class Unsaid:
    """Why PTO text cannot say an op, and what does nearly the same."""

    why: str
    instead: str = ""
    """A formula in ops that it can say, in the names of the op's parameters; nothing where there is none."""
    after: tuple[str, ...] = ()
    """What the formula has names for, one assignment each, in the order in which they are written."""

    @property
    def help(self) -> str:
        """What an error proposes."""
        return f"write it with ops that PTO has: {'; '.join((*self.after, self.instead))}" if self.instead else ""


_NO_FUNCTION = "PTO has no such function, and other ops would round otherwise"
_FORMULAS = {
    "exp2": "pl.exp(x * 0.6931471805599453)",
    "expm1": "pl.exp(x) - 1.0",
    "log2": "pl.log(x) * 1.4426950408889634",
    "log10": "pl.log(x) * 0.4342944819032518",
    "log1p": "pl.log(x + 1.0)",
    "sinh": "(pl.exp(x) - pl.exp(-x)) * 0.5",
    "cosh": "(pl.exp(x) + pl.exp(-x)) * 0.5",
    "tan": "pl.sin(x) / pl.cos(x)",
    "tanh": "1.0 - 2.0 / (pl.exp(x * 2.0) + 1.0)",
    "sigmoid": "1.0 / (pl.exp(-x) + 1.0)",
    "silu": "x / (pl.exp(-x) + 1.0)",
    "softplus": "pl.log(pl.exp(x) + 1.0)",
    "gelu_tanh": "x / (pl.exp((x * x * x * 0.044715 + x) * -1.5957691216057308) + 1.0)",
    "asinh": "pl.log(x + pl.sqrt(x * x + 1.0))",
    "acosh": "pl.log(x + pl.sqrt(x * x - 1.0))",
    "atanh": "pl.log((x + 1.0) / (1.0 - x)) * 0.5",
}
_HALF_PI = "1.5707963267948966"


def _polynomial(name: str, *coefficients: float) -> str:
    """Return the formula of a polynomial, whose last coefficient is that of the highest power."""
    made = str(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        made = f"({made}) * {name} + {coefficient}"
    return made


_ERF = _polynomial("t", 0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ASIN = _polynomial(
    "t",
    1.570796305,
    -0.2145988016,
    0.0889789874,
    -0.0501743046,
    0.030891881,
    -0.0170881256,
    0.0066700901,
    -0.0012624911,
)
_ATAN = _polynomial(
    "s", 1.0, -0.3333314528, 0.1999355085, -0.1420889944, 0.1065626393, -0.07528964, 0.0429096138, -0.0161657367,
    0.0028662257,
)  # fmt: skip
"""Polynomials of Abramowitz and Stegun's Handbook of Mathematical Functions: 7.1.26, 4.4.46 and 4.4.49."""


def _tailed(scale: float, factor: str) -> tuple[str, str]:
    """Return the assignments for the part of an error function that is left of its limit, of a scaled argument."""
    return f"t = 1.0 / (pl.abs(x) * {scale} + 1.0)", f"u = pl.sign(x) * (1.0 - ({_ERF}) * t * pl.exp(x * x * {factor}))"


_WITH_POLYNOMIALS = {
    "erf": ("u", _tailed(0.3275911, "-1.0")),
    "erfc": ("1.0 - u", _tailed(0.3275911, "-1.0")),
    "gelu": ("(u + 1.0) * x * 0.5", _tailed(0.23164188, "-0.5")),
    "asin": ("u", ("t = pl.abs(x)", f"u = pl.sign(x) * ({_HALF_PI} - pl.sqrt(1.0 - t) * ({_ASIN}))")),
    "acos": (
        f"{_HALF_PI} - u", ("t = pl.abs(x)", f"u = pl.sign(x) * ({_HALF_PI} - pl.sqrt(1.0 - t) * ({_ASIN}))"),
    ),
    "atan": (
        f"pl.sign(x) * pl.where(pl.abs(x) > 1.0, {_HALF_PI} - p, p)",
        ("t = pl.minimum(pl.abs(x), 1.0 / pl.abs(x))", "s = t * t", f"p = ({_ATAN}) * t"),
    ),
}  # fmt: skip
_NOT_ELEMENTARY = f"{_NO_FUNCTION}: it needs a polynomial of its own"

UNSAID: Mapping[str, Unsaid] = {
    **{name: Unsaid(_NO_FUNCTION, formula) for name, formula in _FORMULAS.items()},
    **{name: Unsaid(_NOT_ELEMENTARY, *said) for name, said in _WITH_POLYNOMIALS.items()},
    "atan2": Unsaid(
        _NOT_ELEMENTARY,
        f"pl.sign(lhs) * pl.where(rhs < 0.0, {2 * float(_HALF_PI)} - q, q)",
        (
            "t = pl.minimum(pl.abs(lhs), pl.abs(rhs)) / pl.maximum(pl.abs(lhs), pl.abs(rhs))",
            "s = t * t",
            f"p = ({_ATAN}) * t",
            f"q = pl.where(pl.abs(lhs) > pl.abs(rhs), {_HALF_PI} - p, p)",
        ),
    ),
    "randn": Unsaid(
        "it takes logarithms and cosines of doubles, which PTO has not",
        "pl.sqrt(pl.log(1.0 - u) * -2.0) * pl.cos(v * 6.283185307179586)",
        ("u = pl.rand(seed, shape)", "v = pl.rand(seed + 1, shape)"),
    ),
}
"""By the op's name in `pl`."""
OF_RANKS = Unsaid("an exported function is one rank's, and its launch brings no windows of others")
"""Why none of the ops of `pl.distributed` is said."""


def unsaid(op: Op) -> Unsaid | None:
    """Return why an op is not said, None of one that is."""
    return OF_RANKS if op.kind is Kind.DISTRIBUTED else UNSAID.get(op.spec.name)
