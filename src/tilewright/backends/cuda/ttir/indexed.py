"""Indexed memory: rows and elements of a tensor, read and written where a tile of indices says."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import live_of
from tilewright.backends.cuda.ttir.matches import last_of_each
from tilewright.backends.cuda.ttir.places import Places, find, index_of, inside, product
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.tiles import broadcast_valid, in_memory, operand, spread_to, tile_type, zeros
from tilewright.backends.cuda.ttir.values import Extent, Scalar, Tensor, Tile, memory_element, padded
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr
from tilewright.core.types import TileType
from tilewright.dtypes import BOOL
from tilewright.ops.places import places_type


@recipe("tile.take")
def _take(k: Kernel, call: Call, bound: Bound) -> Tile:
    tensor, type_ = bound["x"], tile_type(call)
    valid = changed(k, type_, bound)
    found = find(k, call, bound, valid, type_.shape)
    filling = in_memory(k, operand(k, bound["pad"], type_), tensor.dtype)
    return k.tile(fetched(k, tensor, found.addresses, found.live, filling), type_, valid)


def changed(k: Kernel, type_: TileType, bound: Bound, name: str = "") -> Sequence[Extent]:
    """Return how much counts: as much as is given or, of a number, all that is named."""
    given, indices = bound[name] if name else None, bound["indices"]
    if isinstance(given, Tile):
        return given.valid
    by_row = bound["axis"] == 0 and len(bound["x"].shape) > 1
    return (product(k, indices.valid), *type_.shape[1:]) if by_row else indices.valid


def fetched(k: Kernel, tensor: Tensor, addresses: Value, live: Value, other: Value | None = None) -> Value:
    """Return what lies at addresses; where nothing is live it is zero, or something else."""
    element, shape = memory_element(tensor.dtype), addresses.shape
    k.reads(tensor)
    filling = zeros(k, Value("", element, shape)) if other is None else other
    value = k.t.op(f"tt.load {addresses}, {live}, {filling} : {addresses.type}", element, shape)
    return k.t.compare("cmpi ne", value, zeros(k, value)) if tensor.dtype == BOOL else value


def places_of(k: Kernel, call: Call, bound: Bound) -> tuple[TileType, Sequence[Extent], Places]:
    """Return the type of what goes to some places, how much of it counts, and the places."""
    given = arguments(call)
    x, indices, values, mask = (given[name] for name in ("x", "indices", "values", "mask"))
    assert isinstance(x, Expr) and isinstance(indices, Expr) and isinstance(values, Expr)
    type_ = places_type(x, indices, bound["axis"], mask if bound["mask"] is not None else None, values)  # pyright: ignore
    valid = changed(k, type_, bound, "values")
    return type_, valid, find(k, call, bound, valid, type_.shape)


@recipe("tile.put")
def _put(k: Kernel, call: Call, bound: Bound) -> Tensor:
    tensor: Tensor = bound["x"]
    type_, _, found = places_of(k, call, bound)
    value = in_memory(k, operand(k, bound["values"], type_), tensor.dtype)
    written(k, tensor, found.addresses, value, surviving(k, found))
    return tensor


def surviving(k: Kernel, found: Places) -> Value:
    """Return which elements stay, of several in one place the last."""
    t = k.t
    last = last_of_each(t, found.heads, found.heads_live)
    return t.simple("arith.andi", found.live, aligned(k, found, last))


def aligned(k: Kernel, found: Places, line: Value) -> Value:
    """Return something of each index as something of each element."""
    t, shape = k.t, found.live.shape
    if found.by_row:
        return extents.spread(t, extents.along(t, line, len(shape), 0), shape)
    return line if line.shape == shape else t.shaped("tt.reshape", line, shape)


def written(k: Kernel, tensor: Tensor, addresses: Value, value: Value, live: Value) -> None:
    """Write elements where they are live."""
    k.writes(tensor)
    k.t.do(f"tt.store {addresses}, {value}, {live} : {addresses.type}")


@recipe("tile.ravel_index")
def _ravel(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, type_, mask = k.t, tile_type(call), bound["mask"]
    given: list[Tile | Scalar] = [bound["outer"], bound["inner"]]
    tiles = [each for each in (*given, mask) if isinstance(each, Tile)]
    valid, shape = broadcast_valid(type_, tiles), padded(type_.shape)
    live = live_of(k, shape, valid, None if mask is None else spread_to(k, mask.value, shape))
    sizes = k.indices(bound["extents"])
    found: list[Value] = []
    for each, size, name in zip(given, sizes, ("outer", "inner"), strict=True):
        numbers = spread_to(k, index_of(k, each), shape) if isinstance(each, Tile) else operand(k, each, type_)
        fit = inside(k, call, numbers, live, size, name)
        found.append(t.select(fit, numbers, t.integer(0, I64, shape)))
    apart = t.splat(extents.held(t, sizes[1]), shape)
    return k.tile(t.simple("arith.addi", t.simple("arith.muli", found[0], apart), found[1]), type_, valid)
