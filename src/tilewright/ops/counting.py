"""Counting: tiles of numbers that are so far apart from each other."""

import math
from collections.abc import Sequence

from tilewright.arrays import np
from tilewright.core.annotations import Extents, Number, Tile
from tilewright.core.build import call
from tilewright.core.expr import Const, Expr, MakeTuple, integer
from tilewright.core.extents import dtype_of
from tilewright.core.foreign_names import called
from tilewright.core.linear import difference
from tilewright.core.op import spec_of
from tilewright.core.region import Region, embed, exact
from tilewright.core.types import TileType, tile
from tilewright.dtypes import FP32, INT32, DataType, objection, round_to, show_number
from tilewright.errors import (
    DTypeMismatchError,
    InternalError,
    NotStaticError,
    OperandError,
    OutOfBoundsError,
    ShapeMismatchError,
)
from tilewright.ops.aliases import listed_form
from tilewright.ops.declare import NUMBERS, TILE, op
from tilewright.ops.families import check_dtype
from tilewright.ops.generate import ci, tile_ci
from tilewright.ops.windows import tile_shape

__all__ = ["arange", "iota", "tile_arange"]


def _iota_type(shape: Sequence[Expr], axis: int, start: Expr, step: Expr, dtype: DataType) -> TileType:
    check_dtype(dtype, NUMBERS, ["dtype"])
    extents = tile_shape(shape, "shape")
    if not -len(extents) <= axis < len(extents):
        message = f"a tile of {len(extents)} axes has none of number {axis}"
        raise OutOfBoundsError(message, blame=["axis"], help=f"from {-len(extents)} to {len(extents) - 1}")
    for name, value in (("start", start), ("step", step)):
        if dtype_of(value).is_float() > dtype.is_float():
            help = f"count in floats: dtype=pl.{FP32.symbol}"
            raise DTypeMismatchError(f"{dtype} elements do not count in steps of floats", blame=[name], help=help)
    return tile(extents, dtype)


def _iota(result: TileType, shape: tuple[int, ...], axis: int, start: float, step: float, dtype: DataType) -> Region:
    first, apart = (exact(round_to(np.asarray(number), dtype)) for number in (start, step))
    extents = [1] * len(shape)
    extents[axis] = shape[axis]
    counts = np.reshape(np.arange(shape[axis], dtype=apart.dtype), extents)
    with np.errstate(all="ignore"):
        return embed(round_to(np.broadcast_to(first + counts * apart, shape), dtype), shape, dtype)


def _range(start: Expr, stop: Expr | None, step: Expr) -> tuple[Expr, int]:
    """Return where numbers begin and how many there are; NotStaticError where only the running program knows."""
    first, end = (integer(0), start) if stop is None else (start, stop)
    if any(dtype_of(number).is_float() for number in (first, end, step)):
        known = [_as_written(number) for number in (first, end, step) if isinstance(number, Const)]
        if len(known) == len((first, end, step)) and known[2]:
            return first, math.ceil((known[1] - known[0]) / known[2])
    apart = difference(end, first)
    if not isinstance(apart, Const) or not isinstance(step, Const):
        raise NotStaticError(
            f"arange has to know how many numbers it gives before the program runs, got `{end}` less `{first}`",
            blame=["start"] if stop is None else ["start", "stop"],
            help="count a constant number and add where to begin: i + pl.arange(64)",
        )
    if step.value == 0:
        raise ShapeMismatchError("steps of zero lead nowhere", blame=["step"])
    return first, int(-(-apart.value // step.value))


def _as_written(number: Const) -> float:
    """Return a constant as its author wrote it: 0.1, where fp32 has only what is next to it."""
    return float(str(np.float32(number.value))) if dtype_of(number) == FP32 else float(number.value)


def _arange_type(start: Expr, stop: Expr | None, step: Expr, dtype: DataType | None) -> TileType:
    first, count = _range(start, stop, step)
    if count <= 0:
        message = f"a tile holds something, and from `{start}` to `{stop}` there is nothing to count"
        raise ShapeMismatchError(message, blame=["start", "stop"])
    made = dtype or _default(start, step)
    if isinstance(first, Const) and isinstance(step, Const):
        blame = ["start"] if stop is None else ["start", "stop"]
        for number in (first.value, first.value + (count - 1) * step.value):
            if reason := objection(number, made):
                raise OperandError(f"{show_number(number)} is not a number {made} can hold", blame=blame, help=reason)
    return tile((count,), made)


def _default(*given: Expr) -> DataType:
    return FP32 if any(dtype_of(number).is_float() for number in given) else INT32


def _counted(start: Expr, stop: Expr | None, step: Expr, dtype: DataType | None) -> Expr:
    """Return the numbers of a range as those of `iota`."""
    first, count = _range(start, stop, step)
    made = dtype or _default(start, step)
    spec = spec_of(iota)
    assert spec is not None
    shape = MakeTuple((integer(count),))
    return call(spec, {"shape": shape, "axis": -1, "start": first, "step": step, "dtype": made})


def _never(result: TileType, **_: object) -> Region:
    raise InternalError("arange is always iota")


@op(
    kinds=TILE, infer=_iota_type, evaluate=_iota, accepts=NUMBERS, ulp=1,
    example="columns, rows = pl.iota([1, 32]), pl.iota([16, 1], axis=0)\n"
    "out = pl.store(pl.where(columns <= rows, a, 0.0), [0, 0], out)",
)  # fmt: skip
def iota(shape: Extents, axis: int = -1, start: Number = 0, step: Number = 1, dtype: DataType = INT32) -> Tile:
    """Return numbers that count along an axis: `start`, and each `step` more than the one before; integers wrap.

    Beside `arange` it has any shape: `pl.iota([64, 1], axis=0)` is a column of row numbers.
    """
    ...


@called(numpy="arange", torch="arange", triton="arange")
@op(
    kinds=TILE, name="arange", infer=_arange_type, evaluate=_never, fold=_counted, family="derived", listed=tile_ci,
    unheld=("start", "stop", "step"),
    example="columns = 3 + pl.tile.arange(32)\nout = pl.store(pl.where(columns < 9, a, 0.0), [0, 0], out)",
)  # fmt: skip
def tile_arange(start: Number, stop: Number | None = None, step: Number = 1, dtype: DataType | None = None) -> Tile:
    """Return the numbers from `start` to before `stop`, or from zero to before the only number, as a tile of one axis.

    How many there are has to be known before the program runs; where they start does not: `pl.arange(i, i + 64)`. They
    are int32, or fp32 where one is given as a float, unless `dtype` says otherwise; `stop` is none of them, and may lie
    past the last number of their type. With a list of extents in place of
    `stop` it is `ci`.
    """
    ...


arange = listed_form(tile_arange, ci)
