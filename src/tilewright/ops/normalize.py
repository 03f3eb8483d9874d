"""Normalized exponentials: the elements along an axis as shares of their sum. Only the valid part takes part."""

from functools import partial

from tilewright.core.annotations import X
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.ops.axes import along, one_axis
from tilewright.ops.derived import Writing, cast, derived, float_type, on, widened
from tilewright.ops.families import shaped

__all__ = ["log_softmax", "softmax"]


def _shares(w: Writing, x: Expr, axis: int, is_log: bool) -> Expr:
    kind, place, exact = on(x), one_axis(x, axis), widened(w, x, counts=True)
    below = w.do(f"{kind}.sub", lhs=exact, rhs=along(w, "max", exact, place))
    powers = w.do(f"{kind}.exp", x=below)
    total = along(w, "sum", powers, place)
    if is_log:
        shares = w.do(f"{kind}.sub", lhs=below, rhs=w.do(f"{kind}.log", x=total))
    else:
        shares = w.do(f"{kind}.div", lhs=powers, rhs=total)
    return cast(w, shares, float_type(shaped(x)))


_EXAMPLE = "out = pl.store(pl.{name}(a, axis=-1), [0, 0], out)"


@called("torch triton")
@derived(partial(_shares, is_log=False), ulp=8, example=_EXAMPLE)
def softmax(x: X, axis: int = -1) -> X:
    """Return the exponential of each element divided by the sum of those along the axis; integers become fp32."""
    ...


@called("torch")
@derived(partial(_shares, is_log=True), ulp=8, example=_EXAMPLE)
def log_softmax(x: X, axis: int = -1) -> X:
    """Return the logarithm of `softmax`, without computing that; integers become fp32."""
    ...
