"""Flips: elements along axes in the opposite order, and moved round."""

from collections.abc import Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Tile
from tilewright.core.expr import Const, Expr
from tilewright.core.foreign_names import called
from tilewright.core.region import Region, embed
from tilewright.core.types import ShapedType, TileType
from tilewright.errors import AttributeValueError, ShapeMismatchError
from tilewright.ops.axes import axes_of, one_axis
from tilewright.ops.declare import ANY, TILE, op
from tilewright.ops.derived import Writing, derived
from tilewright.ops.families import computed, shaped

__all__ = ["flip", "roll"]


def _flip_type(x: Expr, axis: int | Sequence[int] | None) -> ShapedType:
    axes_of(x, axis)
    type_ = shaped(x)
    return computed(type_, type_.shape, type_.valid, type_.dtype)


def _flip(result: TileType, x: Region, axis: int | Sequence[int] | None) -> Region:
    flipped = range(x.data.ndim) if axis is None else axis
    return embed(np.flip(x.seen(), tuple(np.atleast_1d(flipped))), result.shape, result.dtype)


def _roll(w: Writing, x: Expr, shift: int, axis: int) -> Expr:
    place, by = one_axis(x, axis), shift.value if isinstance(shift, Const) else shift
    if not isinstance(by, int) or isinstance(by, bool):
        raise AttributeValueError(f"`shift` is an integer that is known, got {by!r}", blame=["shift"], help="shift=1")
    type_ = shaped(x)
    extent: Any = type_.shape[place]
    if type_.valid[place] != extent:
        help = "pl.slice the part that is valid, where its extent is known"
        raise ShapeMismatchError(
            f"a tile is rolled along an axis that is all valid, got {type_}", blame=["x"], help=help
        )
    if not (start := -by % extent):
        return x
    turned = x if place == -1 else w.do("tile.transpose", x=x, axis1=place, axis2=-1)
    rows = shaped(turned).shape[:-1]
    ends = ((start, extent - start), (0, start))
    parts = [w.do("tile.slice", x=turned, shape=(*rows, size), offset=(*(0 for _ in rows), at)) for at, size in ends]
    joined = w.do("tile.concat", src0=parts[0], src1=parts[1])
    return joined if place == -1 else w.do("tile.transpose", x=joined, axis1=place, axis2=-1)


@called("numpy torch triton", numpy="flipud fliplr", torch="flipud fliplr")
@op(
    kinds=TILE, infer=_flip_type, evaluate=_flip, accepts=ANY,
    example="turned = pl.flip(a, axis=-1)\nout = pl.store(turned, [0, 0], out)",
)  # fmt: skip
def flip(x: Tile, axis: int | tuple[int, ...] | None = None) -> Tile:
    """Return the elements along one axis, some, or all in the opposite order; also written `t[:, ::-1]`.

    Of a partly valid tile the valid elements change places, and stay in front.
    """
    ...


@called("numpy torch")
@derived(
    _roll, kinds=TILE, accepts=ANY, example="moved = pl.roll(a, 1, axis=-1)\nout = pl.store(moved, [0, 0], out)"
)  # fmt: skip
def roll(x: Tile, shift: int, axis: int = -1) -> Tile:
    """Return the elements moved by `shift` along an axis; those that leave at one end enter at the other."""
    ...
