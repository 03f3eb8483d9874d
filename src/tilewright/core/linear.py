"""Linear sums: integer arithmetic with equal terms taken together, so that `c + D - (c + H)` is `D - H`."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.build import scalar
from tilewright.core.expr import Call, Const, Expr, integer
from tilewright.core.types import ScalarType


def difference(upper: Expr, lower: Expr) -> Expr:
    """Return `upper - lower`, terms that both have left out."""
    if isinstance(lower, Const) and lower.value == 0:
        return upper  # as it is: an extent may remember which argument it came from
    above, below = _terms(upper), _terms(lower)
    if not (above.keys() & below.keys()):
        return scalar("sub", upper, lower)
    return _sum({term: above.get(term, 0) - below.get(term, 0) for term in {**above, **below}})


def _sum(terms: Mapping[Expr | None, int]) -> Expr:
    constant = terms.get(None, 0)
    result: Expr | None = None
    for term, times in terms.items():
        if term is None or times == 0:
            continue
        part = term if abs(times) == 1 else scalar("mul", term, integer(abs(times)))
        if result is None:
            result = part if times > 0 else scalar("sub", integer(0), part)
        else:
            result = scalar("add" if times > 0 else "sub", result, part)
    if result is None:
        return integer(constant)
    return scalar("add" if constant > 0 else "sub", result, integer(abs(constant))) if constant else result


def _terms(expr: Expr) -> dict[Expr | None, int]:
    """Return an expression as a sum: how often each term is added, and the constant under None."""
    if isinstance(expr, Const):
        return {None: int(expr.value)}
    name = expr.op.spec.name if isinstance(expr, Call) and isinstance(expr.type, ScalarType) else ""
    if not isinstance(expr, Call) or name not in ("add", "sub", "mul"):
        return {expr: 1}
    lhs, rhs = map(_terms, expr.args)
    if name == "mul":
        few, many = (lhs, rhs) if lhs.keys() <= {None} else (rhs, lhs)
        return {term: times * few[None] for term, times in many.items()} if few.keys() <= {None} else {expr: 1}
    sign = -1 if name == "sub" else 1
    return {term: lhs.get(term, 0) + sign * rhs.get(term, 0) for term in {**lhs, **rhs}}
