"""Parts: windows of tiles, and tiles put into others.

Along one axis after the other, elements are gathered from where they lie; what would lie outside is masked.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import checked, offsets_of
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import windowed
from tilewright.backends.cuda.ttir.picks import stretch
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.shape import within
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.tiles import of_rank, tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tile, padded
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr
from tilewright.core.types import TileType
from tilewright.ops.row_gather import FIT

OUTSIDE = "a part does not fit its tile"
UNFIT = f"a window does not fit\n{FIT}"


@recipe("tile.slice")
def _slice(k: Kernel, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["x"]
    sizes = [int(extent.known) for extent in bound["shape"]]
    wanted = k.indices(bound["valid_shape"]) if bound["valid_shape"] is not None else sizes
    window, valid = _window(k, call, source, offsets_of(call, "offset"), sizes, wanted)
    dropped = {axis % len(sizes) for axis in bound["drop_dims"] or ()}
    kept = [axis for axis in range(len(sizes)) if axis not in dropped]
    if dropped:
        window = k.t.shaped("tt.reshape", window, [window.shape[axis] for axis in kept])
    return k.tile(window, tile_type(call), [valid[axis] for axis in kept])


@recipe("tile.extract")
def _extract(k: Kernel, call: Call, bound: Bound) -> Tile:
    sizes = [int(extent.known) for extent in bound["shape"]]
    given = arguments(call)
    offsets = [expr for expr in (given["index_row"], given["index_col"]) if isinstance(expr, Expr)]
    window, valid = _window(k, call, bound["src"], offsets, sizes, sizes)
    return k.tile(window, tile_type(call), valid)


@recipe("tile.strided")
def _strided(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_, steps = bound["x"], tile_type(call), bound["steps"]
    value = source.value
    for axis, (count, step) in enumerate(zip(padded(type_.shape), steps, strict=True)):
        value = stretch(k.t, value, axis, 0, count, step)
    valid = [extents.counted(k.t, extent, step) for extent, step in zip(source.valid, steps, strict=True)]
    return k.tile(value, type_, valid)


def _window(
    k: Kernel, call: Call, source: Tile, offsets: Sequence[Expr], sizes: Sequence[int], wanted: Sequence[Extent]
) -> tuple[Value, list[Extent]]:
    """Return the elements of a window, and how many of them are valid; of one that does not fit, none."""
    t, starts = k.t, [k.index(k.scalar(offset)) for offset in offsets]
    fit = checked(k, call, offsets, OUTSIDE, sizes, source.type.shape)
    value, valid = source.value, list[Extent]()
    for axis, (start, size) in enumerate(zip(starts, padded(tuple(sizes)), strict=True)):
        value = stretch(k.t, value, axis, start, size)
        found = extents.least(t, wanted[axis], extents.minus(t, source.valid[axis], start))
        found = extents.most(t, 0, extents.least(t, found, sizes[axis]))
        valid.append(found if fit is None else t.select(fit, extents.held(t, found), t.integer(0)))
    return value, valid


@recipe("tile.assemble")
def _assemble(k: Kernel, call: Call, bound: Bound) -> Tile:
    target: Tile = bound["target"]
    sizes = (*(1,) * (len(target.type.shape) - len(bound["source"].type.shape)), *bound["source"].type.shape)
    fit = checked(k, call, offsets_of(call, "offset"), OUTSIDE, sizes, target.type.shape)
    value, valid = _put(k, target, bound["source"], k.indices(bound["offset"]), fit)
    return k.tile(value, tile_type(call), valid)


def _put(
    k: Kernel, target: Tile, source: Tile, offsets: Sequence[Extent], fit: Value | None
) -> tuple[Value, list[Extent]]:
    """Return a tile with the valid part of another written into it, and how far both reach."""
    t, shape, rank = k.t, target.value.shape, len(target.value.shape)
    value = of_rank(k, as_element(t, source.value, source.type.dtype, target.type.dtype), rank)
    sizes: list[Extent] = [*(1,) * (rank - len(source.valid)), *source.valid]
    mask = None if fit is None else t.splat(fit, shape)
    valid: list[Extent] = []
    for axis, (start, size) in enumerate(zip(offsets, sizes, strict=True)):
        value = stretch(k.t, value, axis, extents.minus(t, 0, start), shape[axis])
        numbers = extents.positions(t, shape, axis)
        end = extents.plus(t, start, size)
        first = t.compare("cmpi sge", numbers, t.splat(extents.held(t, start), numbers.shape))
        last = t.compare("cmpi slt", numbers, t.splat(extents.held(t, end), numbers.shape))
        inside = extents.spread(t, t.simple("arith.andi", first, last), shape)
        mask = inside if mask is None else t.simple("arith.andi", mask, inside)
        valid.append(extents.most(t, target.valid[axis], end))
    assert mask is not None
    return t.select(mask, value, target.value), valid


@recipe("tile.concat")
def _concat(k: Kernel, call: Call, bound: Bound) -> Tile:
    first, second, type_ = bound["src0"], bound["src1"], tile_type(call)
    value = side_by_side(k, first, second, len(type_.shape) - 1, type_)
    columns = first.type.shape[-1]
    return k.tile(value, type_, [*first.valid[:-1], extents.plus(k.t, columns, second.valid[-1])])


def side_by_side(k: Kernel, first: Tile, second: Tile, axis: int, type_: TileType) -> Value:
    """Return the elements of two tiles one after the other along an axis."""
    shape, size = padded(type_.shape), first.type.shape[axis]
    before, after = (stretch(k.t, x.value, axis, start, shape[axis]) for x, start in ((first, 0), (second, -size)))
    numbers = extents.positions(k.t, shape, axis)
    is_first = k.t.compare("cmpi slt", numbers, k.t.integer(size, I64, numbers.shape))
    return k.t.select(extents.spread(k.t, is_first, shape), before, after)


@recipe("tile.gather_row")
def _gather_row(k: Kernel, call: Call, bound: Bound) -> Tile:
    """Write a window of a tensor into a tile, as much of it as is asked for."""
    t, target, tensor = k.t, bound["dst"], bound["src"]
    shape = tuple(int(extent.known) for extent in bound["shapes"])
    size = k.indices(bound["valid_shape"]) if bound["valid_shape"] is not None else list[Extent](shape)
    within_shape = within(k, call, size, shape)
    turned = bool(bound["transpose"])
    come = checked(k, call, offsets_of(call, "src_offset"), UNFIT, within_shape, tensor.shape)
    gone = within_shape[::-1] if turned else within_shape
    fit = checked(k, call, offsets_of(call, "dst_offset"), UNFIT, gone, target.type.shape)
    if come is not None:
        within_shape = [t.select(come, extents.held(t, extent), t.integer(0)) for extent in within_shape]
    window = windowed(k, tensor, TileType(shape, tensor.dtype, shape), k.indices(bound["src_offset"]), within_shape)
    if turned:
        value = t.turned(window.value, (1, 0))
        window = k.tile(value, TileType(shape[::-1], tensor.dtype, (None, None)), within_shape[::-1])
    value, _ = _put(k, target, window, k.indices(bound["dst_offset"]), fit)
    return k.tile(value, tile_type(call), target.valid)
