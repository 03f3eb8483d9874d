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

    @property
    def help(self) -> str:
        """What an error proposes."""
        return f"write it with ops that PTO has: {self.instead}" if self.instead else ""


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
_NOT_ELEMENTARY = "asin acos atan atan2 erf erfc gelu"

UNSAID: Mapping[str, Unsaid] = {
    **{name: Unsaid(_NO_FUNCTION, formula) for name, formula in _FORMULAS.items()},
    **{name: Unsaid(f"{_NO_FUNCTION}: it needs a polynomial of its own") for name in _NOT_ELEMENTARY.split()},
    "randn": Unsaid("it takes logarithms and cosines of doubles, which PTO has not"),
}
"""By the op's name in `pl`."""
OF_RANKS = Unsaid("an exported function is one rank's, and its launch brings no windows of others")
"""Why none of the ops of `pl.distributed` is said."""


def unsaid(op: Op) -> Unsaid | None:
    """Return why an op is not said, None of one that is."""
    return OF_RANKS if op.kind is Kind.DISTRIBUTED else UNSAID.get(op.spec.name)
