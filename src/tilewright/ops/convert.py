"""Conversion: elements and scalars in another type."""

from typing import Any

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.annotations import Number, X
from tilewright.core.enums import RoundMode
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.op import Kind, Undefined
from tilewright.core.region import Array, Region, embed, exact, shaded
from tilewright.core.types import ScalarType, ShapedType
from tilewright.dtypes import DataType, round_to
from tilewright.errors import AttributeValueError, DTypeMismatchError
from tilewright.ops.declare import ANY, op
from tilewright.ops.families import computed, shaped

__all__ = ["cast"]


def round_mode(mode: str | int) -> RoundMode:
    """Return a rounding mode from its name or number."""
    try:
        return RoundMode[mode] if isinstance(mode, str) else RoundMode(mode)
    except (KeyError, ValueError):
        names = ", ".join(f"{m.name} ({m.value})" for m in RoundMode)
        raise AttributeValueError(f"there is no rounding mode {mode!r}", help=f"one of {names}") from None


def _cast_type(x: Expr, target_type: DataType, mode: str | int) -> ShapedType | ScalarType:
    round_mode(mode)
    source = x.type.dtype if isinstance(x.type, ScalarType) else shaped(x).dtype
    for dtype in (source, target_type):
        if dtype not in _CASTABLE:
            raise DTypeMismatchError(f"{dtype} values cannot be converted", blame=["x"])
    if isinstance(x.type, ScalarType):
        return ScalarType(target_type)
    return computed(shaped(x), shaped(x).shape, shaped(x).valid, target_type)


def _itself(x: Expr, target_type: DataType, mode: str | int) -> Expr | None:
    """Return a value that has the type already."""
    source = x.type.dtype if isinstance(x.type, ScalarType) else shaped(x).dtype
    return x if source == target_type else None


_CASTABLE = ANY | {dt.INDEX}


def convert(values: Array, target: DataType, mode: str | int) -> Array:
    """Return `values` as `target` elements: to integers they are rounded by `mode` and saturate, NaN becoming zero."""
    values = exact(values)
    if values.dtype.kind != "f" or not target.is_int():
        return round_to(values, target)
    low, high = target.limits
    integers = np.uint64 if target.is_unsigned_int() else np.int64
    with np.errstate(all="ignore"):
        rounded = _rounded(np.where(np.isnan(values), 0.0, values), round_mode(mode))
    too_high = rounded >= float(high)
    held = np.where(too_high | (rounded < low), 0, rounded).astype(integers)
    return np.select([too_high, rounded < low], [integers(high), integers(low)], held).astype(target.numpy)


def _rounded(values: Array, mode: RoundMode) -> Array:
    if mode in (RoundMode.none, RoundMode.rint):
        return np.rint(values)
    if mode is RoundMode.round:
        cut = np.trunc(values)  # adding half first would round: a whole number from 2**52 on up to the next one
        return cut + np.where(np.abs(values - cut) >= 0.5, np.sign(values), 0.0)
    if mode is RoundMode.odd:
        truncated = np.trunc(values)
        return np.where((truncated != values) & (truncated % 2 == 0), truncated + np.sign(values), truncated)
    return {RoundMode.floor: np.floor, RoundMode.ceil: np.ceil, RoundMode.trunc: np.trunc}[mode](values)


def _cast(result: ShapedType | ScalarType, x: Any, target_type: DataType, mode: str | int) -> Any:
    if isinstance(x, Region):
        converted = embed(convert(x.live, target_type, mode), x.data.shape, target_type)
        return shaded(converted, [x.shade(x.window)], x.origin)
    if isinstance(x, int):
        return dt.round_scalar(x, target_type)
    return dt.round_scalar(convert(np.asarray(x), target_type, mode).item(), target_type)


@called(numpy="ndarray.astype", torch="Tensor.to", triton="cast")
@op(
    kinds=(Kind.TILE, Kind.TENSOR, Kind.SCALAR), infer=_cast_type, fold=_itself, evaluate=_cast, accepts=ANY,
    undefined=Undefined.SPREADS, codes={"mode": tuple(mode.name for mode in RoundMode)},
    example='half = pl.cast(a, pl.FP16, mode="rint")\nout = pl.store(pl.cast(half, pl.FP32), [0, 0], out)',
)  # fmt: skip
def cast(x: X | Number, target_type: DataType, mode: str | int = "round") -> X:
    """Return `x` converted to `target_type`; `x` itself, no copy, where it has that type already.

    Floats become integers as `mode` says: `round` to the nearest, ties away from zero; `rint` and `none` to the
    nearest, ties to even; `floor`, `ceil` and `trunc` down, up and towards zero; `odd` to the odd one of the two around
    a fraction. What is too large becomes the integer nearest to it, NaN becomes zero. All else is one in every mode:
    floats and integers become floats by rounding to the nearest, ties to even, and what is too large becomes infinite,
    or what a type without infinities has instead; integers become narrower ones, or change their sign, by keeping their
    last bits; everything but zero becomes True, and True becomes one.
    """
    ...
