"""Shape: tiles under another shape, turned, with another valid part."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.tiles import tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tile, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.ops.reshape import Of, part_of


@recipe("tile.reshape")
def _reshape(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    part = part_of(source.type, type_.shape)
    if part is None or any(isinstance(extent, Of) and extent.times != 1 for extent in part):
        raise refused("`tile.reshape` of a tile of which only the running program knows what is valid", call.span)
    valid = [source.valid[extent.axis] if isinstance(extent, Of) else extent for extent in part]
    return reshaped(k, source, type_, valid)


def reshaped(k: Kernel, source: Tile, type_: TileType, valid: Sequence[Extent]) -> Tile:
    """Return a tile's elements under another shape; padding must not come between them."""
    have, want = source.type.shape, type_.shape
    plain = padded(have) == have and padded(want) == want
    if not plain and [n for n in have if n != 1] != [n for n in want if n != 1]:
        raise refused(f"a reshape of {list(have)} to {list(want)}, extents that are no powers of two", k.t.span)
    return k.tile(k.t.shaped("tt.reshape", source.value, padded(want)), type_, valid)


@recipe("tile.transpose")
def _transpose(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _turned(k, call, bound["x"], int(bound["axis1"]), int(bound["axis2"]))


@recipe("tile.transpose_view")
def _transpose_view(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _turned(k, call, bound["tile"], -1, -2)


def _turned(k: Kernel, call: Call, source: Tile, first: int, second: int) -> Tile:
    order = list(range(len(source.type.shape)))
    order[first], order[second] = order[second], order[first]
    return k.tile(
        k.t.turned(source.value, order), tile_type(call), [source.valid[axis] for axis in order], source.is_zero_outside
    )


@recipe("tile.set_validshape")
def _set_validshape(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, wanted = bound["x"], k.indices([bound["valid_rows"], bound["valid_cols"]])
    valid = within(k, call, wanted, source.type.shape[-2:])
    return k.tile(source.value, tile_type(call), [*source.valid[:-2], *valid])


def within(k: Kernel, call: Call, wanted: Sequence[Extent], shape: Sequence[int]) -> list[Extent]:
    """Return valid extents of a shape; one that does not fit is an error, and nothing."""
    valid: list[Extent] = []
    for want, extent in zip(wanted, shape, strict=True):
        if not isinstance(want, int):
            bad = k.t.compare("cmpi ugt", want, k.t.integer(extent))
            k.fail(bad, "a valid part does not fit its tile", call.span)
            want = k.t.select(bad, k.t.integer(0), want)
        valid.append(want)
    return valid
