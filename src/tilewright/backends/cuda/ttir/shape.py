"""Shape: tiles under another shape, turned, with another valid part."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.large import turned
from tilewright.backends.cuda.ttir.picks import counted, steps
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.tensor_views import carried
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.tiles import operand, tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tile, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType, swapped
from tilewright.ops.reshape import FILL, part_of


@recipe("tile.reshape")
def _reshape(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    part = part_of(source.type, type_.shape)
    if part is None:
        _check_whole(k, call, source)
        return reshaped(k, source, type_, type_.shape)
    return reshaped(k, source, type_, carried(k, source.valid, part))


def _check_whole(k: Kernel, call: Call, source: Tile) -> None:
    """Note an error where not all of a tile is valid."""
    for have, extent in zip(source.valid, source.type.shape, strict=True):
        if have != extent:
            bad = k.t.compare("cmpi ne", extents.held(k.t, have), k.t.integer(extent))
            k.fail(bad, f"only a wholly valid value can be reshaped\n{FILL}", call.span)


def reshaped(k: Kernel, source: Tile, type_: TileType, valid: Sequence[Extent]) -> Tile:
    """Return a tile's elements under another shape; where padding comes between them, each is fetched."""
    have, want = source.type.shape, type_.shape
    plain = padded(have) == have and padded(want) == want
    if not plain and [n for n in have if n != 1] != [n for n in want if n != 1]:
        return k.tile(counted(k.t, source.value, have, numbered(k, want)), type_, valid)
    return k.tile(k.t.shaped("tt.reshape", source.value, padded(want)), type_, valid)


def numbered(k: Kernel, shape: Sequence[int]) -> Value:
    """Return the number of each element of a shape along its rows; -2 in its padding."""
    t, wide = k.t, padded(tuple(shape))
    found = t.integer(0, I64, wide)
    for axis, step in enumerate(steps(shape)):
        places = extents.positions(t, wide, axis)
        apart = t.simple("arith.muli", places, t.integer(step, I64, places.shape))
        found = t.simple("arith.addi", found, extents.spread(t, apart, wide))
    mask = k.inside(wide, shape)
    return found if mask is None else t.select(mask, found, t.integer(-2, I64, wide))


@recipe("tile.transpose")
def _transpose(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _turned(k, call, bound["x"], int(bound["axis1"]), int(bound["axis2"]))


@recipe("tile.transpose_view")
def _transpose_view(k: Kernel, call: Call, bound: Bound) -> Tile:
    return _turned(k, call, bound["tile"], -1, -2)


def _turned(k: Kernel, call: Call, source: Tile, first: int, second: int) -> Tile:
    order = swapped(range(len(source.type.shape)), first, second)
    return k.tile(
        turned(k.t, source.value, order),
        tile_type(call),
        [source.valid[axis] for axis in order],
        source.is_zero_outside,
    )


@recipe("tile.set_validshape")
def _set_validshape(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, wanted = bound["x"], k.indices([bound["valid_rows"], bound["valid_cols"]])
    valid = within(k, call, wanted, source.type.shape[-2:])
    return k.tile(source.value, tile_type(call), [*source.valid[:-2], *valid])


@recipe("tile.full")
def _full(k: Kernel, call: Call, bound: Bound) -> Tile:
    type_, asked = tile_type(call), bound["valid_shape"]
    valid = type_.shape if asked is None else within(k, call, k.indices(asked), type_.shape)
    return k.tile(operand(k, bound["value"], type_), type_, valid)


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
