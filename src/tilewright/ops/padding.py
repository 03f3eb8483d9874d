"""Padding: values made whole by writing a number wherever they hold no data."""

from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Extents, Tile, X
from tilewright.core.enums import PadValue
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.region import Region, whole
from tilewright.core.types import ShapedType, reshaped, show_shape
from tilewright.errors import ShapeMismatchError
from tilewright.ops.declare import ANY, TILE, UNIFIED, op
from tilewright.ops.families import shaped
from tilewright.ops.load import padding
from tilewright.ops.windows import check_rank, tile_shape

__all__ = ["fillpad", "fillpad_expand", "fillpad_inplace"]


def _fillpad_type(x: Expr, pad_value: PadValue | float) -> ShapedType:
    source = shaped(x)
    padding(pad_value, source.dtype)
    return reshaped(source, source.shape, source.shape)


def _inplace_type(tile: Expr, pad_value: PadValue | float) -> ShapedType:
    return _fillpad_type(tile, pad_value)


def _expand_type(x: Expr, shape: tuple[Expr, ...], pad_value: PadValue | float) -> ShapedType:
    source = shaped(x)
    check_rank(shape, len(source.shape), "shape", "value")
    extents = tile_shape(shape, "shape")
    padding(pad_value, source.dtype)
    if any(isinstance(have, int) and have > want for have, want in zip(source.shape, extents, strict=True)):
        raise ShapeMismatchError(
            f"fillpad_expand never makes an axis shorter: {show_shape(source.shape)} to {show_shape(extents)}",
            blame=["x", "shape"],
            help="pl.slice takes a part",
        )
    return reshaped(source, extents, extents)


def _fill(shape: tuple[int, ...], x: Region, pad_value: PadValue | float) -> Region:
    data = np.full(shape, padding(pad_value, x.dtype), x.data.dtype)
    data[x.window] = x.seen()
    return whole(data)


def _fillpad(result: ShapedType, x: Region, pad_value: PadValue | float) -> Region:
    return _fill(x.data.shape, x, pad_value)


def _inplace(result: ShapedType, tile: Region, pad_value: PadValue | float) -> Region:
    return _fill(tile.data.shape, tile, pad_value)


def _expand(result: ShapedType, x: Region, shape: tuple[int, ...], pad_value: PadValue | float, **_: Any) -> Region:
    return _fill(shape, x, pad_value)


_SOME = "some = pl.load(x, [0, 0], [16, 32], valid_shape=[5, 7])\n"


@called(numpy="pad", torch="nn.functional.pad")
@op(
    kinds=UNIFIED, infer=_fillpad_type, evaluate=_fillpad, accepts=ANY,
    example=f"{_SOME}out = pl.store(pl.fillpad(some, pad_value=pl.PadValue.zero), [0, 0], out)",
)  # fmt: skip
def fillpad(x: X, pad_value: PadValue | float = PadValue.zero) -> X:
    """Return `x` with everything outside its valid part filled, so that all of it is valid."""
    ...


@op(
    kinds=UNIFIED, infer=_expand_type, evaluate=_expand, accepts=ANY,
    example="some = pl.load(x, [0, 0], [8, 16], valid_shape=[5, 7])\n"
    "out = pl.store(pl.fillpad_expand(some, [16, 32]), [0, 0], out)",
)  # fmt: skip
def fillpad_expand(x: X, shape: Extents, pad_value: PadValue | float = PadValue.zero) -> X:
    """Return a value of a larger `shape` with the valid part of `x` at its start and one number everywhere else."""
    ...


@op(
    kinds=TILE, infer=_inplace_type, evaluate=_inplace, accepts=ANY,
    example=f"{_SOME}out = pl.store(pl.tile.fillpad_inplace(some), [0, 0], out)",
)  # fmt: skip
def fillpad_inplace(tile: Tile, pad_value: PadValue | float = PadValue.zero) -> Tile:
    """Return the tile with everything outside its valid part filled, so that all of it is valid."""
    ...
