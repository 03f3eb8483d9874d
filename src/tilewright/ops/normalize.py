"""Normalized exponentials: the elements along an axis as shares of their sum. Only the valid part takes part."""

from tilewright.core.annotations import X
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.ops.axes import along, one_axis
from tilewright.ops.derived import Writing, cast, derived, float_type, on, widened
from tilewright.ops.families import shaped

__all__ = ["log_softmax", "softmax"]


def _softmax(w: Writing, x: Expr, axis: int) -> Expr:
    kind, place, exact = on(x), one_axis(x, axis), widened(w, x, counts=True)
    below = w.do(f"{kind}.sub", lhs=exact, rhs=along(w, "max", exact, place))
    powers = w.do(f"{kind}.exp", x=below)
    shares = w.do(f"{kind}.div", lhs=powers, rhs=along(w, "sum", powers, place))
    return cast(w, shares, float_type(shaped(x)))


def _log_softmax(w: Writing, x: Expr, axis: int) -> Expr:
    kind, place, exact = on(x), one_axis(x, axis), widened(w, x, counts=True)
    below = w.do(f"{kind}.sub", lhs=exact, rhs=along(w, "max", exact, place))
    total = along(w, "sum", w.do(f"{kind}.exp", x=below), place)
    return cast(w, w.do(f"{kind}.sub", lhs=below, rhs=w.do(f"{kind}.log", x=total)), float_type(shaped(x)))


_EXAMPLE = "out = pl.store(pl.{name}(a, axis=-1), [0, 0], out)"


@called("torch triton")
@derived(_softmax, ulp=8, example=_EXAMPLE)
def softmax(x: X, axis: int = -1) -> X:
    """Return the exponential of each element divided by the sum of those along the axis; integers become fp32."""
    ...


@called("torch")
@derived(_log_softmax, ulp=8, example=_EXAMPLE)
def log_softmax(x: X, axis: int = -1) -> X:
    """Return the logarithm of `softmax`, without computing that; integers become fp32."""
    ...
