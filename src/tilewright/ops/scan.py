"""Scans: along an axis, what all elements up to each one fold to. Only the valid part takes part.

A sum is rounded where it is stored, as far as its op's accuracy goes: what goes on from element to element is not.
"""

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from tilewright.arrays import np
from tilewright.core.annotations import X
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.region import Region, embed, exact
from tilewright.core.types import ShapedType
from tilewright.dtypes import BOOL, INT32, DataType
from tilewright.ops.axes import COUNTED, one_axis
from tilewright.ops.declare import NUMBERS, UNIFIED, op
from tilewright.ops.families import check_dtype, computed, shaped

__all__ = ["cummax", "cummin", "cumprod", "cumsum"]

F = TypeVar("F", bound=Callable[..., Any])


def scan(
    combine: str, start: Callable[[DataType], Any], ulp: float = 0, accepts: Collection[DataType] = NUMBERS
) -> Callable[[F], F]:
    """Declare an op that folds with the NumPy function `combine` and keeps every step; `start` changes nothing."""

    def infer(x: Expr, axis: int, reverse: bool) -> ShapedType:
        type_ = shaped(x)
        check_dtype(type_.dtype, accepts, ["x"])
        one_axis(x, axis)
        return computed(type_, type_.shape, type_.valid, INT32 if type_.dtype == BOOL else type_.dtype)

    def evaluate(result: ShapedType, x: Region, axis: int, reverse: bool) -> Region:
        live = x.seen().astype(np.int32) if x.dtype == BOOL else exact(x.seen())
        turned = np.flip(live, axis) if reverse else live
        with np.errstate(all="ignore"):
            steps = getattr(np, combine).accumulate(turned, axis=axis, dtype=turned.dtype)
        return embed(np.flip(steps, axis) if reverse else steps, x.data.shape, result.dtype)

    return op(
        kinds=UNIFIED, infer=infer, evaluate=evaluate, family="scan", combine=combine, start=start, accepts=accepts,
        ulp=ulp, example="out = pl.store(pl.{name}(a, axis=-1), [0, 0], out)",
    )  # fmt: skip


@called("numpy torch triton")
@scan("add", start=lambda dtype: -0.0 if dtype.is_float() else 0, ulp=4, accepts=COUNTED)
def cumsum(x: X, axis: int = -1, reverse: bool = False) -> X:
    """Return the sum of all elements up to each one along an axis, or from each one on with `reverse`.

    Of a mask it is how many are True, as int32. Behind sums that leave the range of floats it may be NaN.
    """
    ...


@called("numpy torch")
@scan("multiply", start=lambda dtype: 1, ulp=8)
def cumprod(x: X, axis: int = -1, reverse: bool = False) -> X:
    """Return the product of all elements up to each one along an axis, or from each one on with `reverse`.

    Behind products that leave the range of floats it may be NaN.
    """
    ...


@called("torch", numpy="np.maximum.accumulate")
@scan("maximum", start=lambda dtype: dtype.limits[0])
def cummax(x: X, axis: int = -1, reverse: bool = False) -> X:
    """Return the largest element up to each one along an axis, or from each one on with `reverse`; NaN stays."""
    ...


@called("torch", numpy="np.minimum.accumulate")
@scan("minimum", start=lambda dtype: dtype.limits[1])
def cummin(x: X, axis: int = -1, reverse: bool = False) -> X:
    """Return the smallest element up to each one along an axis, or from each one on with `reverse`; NaN stays."""
    ...
