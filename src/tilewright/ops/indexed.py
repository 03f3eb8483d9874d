"""Indexed memory: rows or elements of a tensor, read and written where a tile of indices says."""

from typing import Any

from tilewright.arrays import np
from tilewright.core.access import Access, touch_each
from tilewright.core.annotations import Number, Tensor, Tile
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.op import Effect
from tilewright.core.region import Region, blank, shaded
from tilewright.core.types import ShapedType, TileType
from tilewright.dtypes import round_to
from tilewright.ops.declare import ANY, TILE, op
from tilewright.ops.families import shaped
from tilewright.ops.places import changed_part, check_given, find, given_elements, in_turn, places_type

__all__ = ["put", "take"]


def _take_type(x: Expr, indices: Expr, mask: Expr | None, pad: Expr, axis: int | None) -> TileType:
    result = places_type(x, indices, axis, mask)
    return check_given(pad, "pad", x, result)


def _take(result: TileType, x: Region, indices: Region, mask: Region | None, pad: float, axis: int | None) -> Region:
    valid = changed_part(result, indices, pad, axis == 0 and x.data.ndim > 1)
    found = find(x, indices, axis, mask, valid)
    touch_each(Access.READ, x.data, found.numbers)
    data, places = blank(result.shape, result.dtype), found.numbers
    taken = Region(data, valid)
    live: Any = np.full(valid, round_to(np.asarray(pad), result.dtype))
    shade = np.zeros(valid, np.uint8)
    if found.picked.any():
        live[found.picked] = x.data[places]
        shade[found.picked] = x.shade(places)  # pyright: ignore[reportArgumentType]
    data[taken.window] = live
    return shaded(taken.forgotten(), [shade], x.origin)


def _put_type(x: Expr, indices: Expr, values: Expr, mask: Expr | None, axis: int | None) -> ShapedType:
    check_given(values, "values", x, places_type(x, indices, axis, mask, values))
    return shaped(x)


def _put(result: ShapedType, x: Region, indices: Region, values: Any, mask: Region | None, axis: int | None) -> Region:
    by_row = axis == 0 and x.data.ndim > 1
    rest = TileType((0, *x.data.shape[1:]), x.dtype, (0, *x.data.shape[1:]))
    valid = changed_part(rest, indices, values, by_row)
    found = find(x, indices, axis, mask, valid)
    touch_each(Access.WRITE, x.data[(..., *found.window)], found.numbers)
    given = given_elements(values, "values", valid, x.dtype, found.picked)
    for some in in_turn(x.data, found):
        places: Any = (*(number[some] for number in found.numbers), *found.window)
        x.data[places] = given[some]
        x.brighten(places)
    return x


@called("numpy torch", torch="index_select", triton="gather")
@op(
    kinds=TILE, infer=_take_type, evaluate=_take, effect=Effect.READ, accepts=ANY, domain=(0.0, 0.9),
    example="rows = pl.cast(pl.tile.full([1, 16], dtype=pl.FP32, value=3.0), pl.INT32)\n"
    "out = pl.store(pl.take(x, rows), [0, 0], out)",
)  # fmt: skip
def take(x: Tensor, indices: Tile, *, mask: Tile | None = None, pad: Number = 0, axis: int | None = 0) -> Tile:
    """Return the rows or elements of a tensor that indices name; also written `x[indices]`.

    With `axis=0` an index names an element of a vector, or a row; with `axis=None` it counts elements along rows. One
    outside the tensor is an error. Where `mask` is false nothing is read, and `pad` is returned.
    """
    ...


@called("numpy", torch="Tensor.index_put_", triton="tl.store")
@op(
    kinds=TILE, infer=_put_type, evaluate=_put, effect=Effect.WRITE, alias="x", writes="x", accepts=ANY,
    domain=(0.0, 0.9),
    example="rows = pl.cast(pl.tile.full([1, 16], dtype=pl.FP32, value=3.0), pl.INT32)\nout = pl.put(out, rows, a)",
)  # fmt: skip
def put(x: Tensor, indices: Tile, values: Tile | Number, *, mask: Tile | None = None, axis: int | None = 0) -> Tensor:
    """Write the rows or elements of a tensor that indices name; return the tensor.

    Indices and `axis` are those of `take`. Of several in one place the last stays; where `mask` is false nothing is
    written. `pl.atomic_add` adds instead.
    """
    ...
