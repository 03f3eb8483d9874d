"""Product types: the elements that are multiplied, and what their products are summed in."""

from tilewright.dtypes import FP8E4M3FN, FP8E5M2, FP32, FP64, INT32, DataType, common, promote
from tilewright.ops.declare import FLOATS, INTEGERS

SMALL_FLOATS = frozenset((FP8E4M3FN, FP8E5M2))
"""Floats that are multiplied as longer ones, which hold their products exactly."""
SUPPORTED = FLOATS | INTEGERS | SMALL_FLOATS


def accumulator(dtype: DataType) -> DataType:
    """Return the type products of `dtype` elements are summed in."""
    if dtype.is_float():
        return FP64 if dtype == FP64 else FP32
    return dtype if dtype.bits > INT32.bits else INT32


def summed_in(lhs: DataType, rhs: DataType, result: DataType) -> DataType:
    """Return the type products of two element types are summed in: integers in all the bits their result has."""
    wide = accumulator(promote(lhs, rhs))
    return result if wide.is_int() and result.is_int() and result.bits > wide.bits else wide


def conversion(left: DataType, right: DataType) -> str:
    """Return how factors of two types come to one that holds the numbers of both."""
    wide = common(left, right)
    if wide is None:
        return "no integers hold both: convert one, pl.cast(..., pl.INT64) or pl.cast(..., pl.UINT64)"
    sides = [side for side, dtype in (("the left one", left), ("the right one", right)) if dtype != wide]
    return f"convert {' and '.join(sides)}: pl.cast(..., pl.{wide.symbol})"
