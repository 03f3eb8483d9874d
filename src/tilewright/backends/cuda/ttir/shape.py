"""Shape: tiles under another shape, turned, with another valid part."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.picks import counted, steps
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.tensor_views import carried
from tilewright.backends.cuda.ttir.text import I64
from tilewright.backends.cuda.ttir.tiles import tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tile, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.ops.reshape import RESHAPED, part_of


@recipe("tile.reshape")
def _reshape(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_ = bound["x"], tile_type(call)
    part = part_of(source.type, type_.shape)
    if part is None:
        for have, extent in zip(source.valid, source.type.shape, strict=True):
            if have != extent:
                short = k.t.compare("cmpi ne", extents.held(k.t, have), k.t.integer(extent))
                k.fail(short, f"a tile that is valid in part only cannot be reshaped\n{RESHAPED}", call.span)
        return reshaped(k, source, type_, type_.shape)
    return reshaped(k, source, type_, carried(k, source.valid, part))


def reshaped(k: Kernel, source: Tile, type_: TileType, valid: Sequence[Extent]) -> Tile:
    """Return a tile's elements under another shape; where padding would come between them, one by one."""
    have, want, t = source.type.shape, type_.shape, k.t
    plain = padded(have) == have and padded(want) == want
    if plain or [n for n in have if n != 1] == [n for n in want if n != 1]:
        return k.tile(t.shaped("tt.reshape", source.value, padded(want)), type_, valid)
    numbers = t.integer(0, I64, padded(want))
    for axis, step in enumerate(steps(want)):
        place = extents.positions(t, padded(want), axis)
        scaled = t.simple("arith.muli", place, t.integer(step, I64, place.shape))
        numbers = t.simple("arith.addi", numbers, extents.spread(t, scaled, padded(want)))
    return k.tile(counted(t, source.value, have, numbers), type_, valid)


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
