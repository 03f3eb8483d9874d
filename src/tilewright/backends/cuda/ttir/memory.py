"""Memory: rows and elements that a tile's indices count in a tensor, gathered into a tile or scattered from one."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.folds import flat
from tilewright.backends.cuda.ttir.indexed import fetched, written
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import live_of, loaded
from tilewright.backends.cuda.ttir.matches import last_of_each
from tilewright.backends.cuda.ttir.places import element_addresses, index_of, inside, product, row_addresses
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.tiles import in_memory, tile_type
from tilewright.backends.cuda.ttir.values import Extent, Tensor, Tile, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import INT32
from tilewright.ops.indices import chosen
from tilewright.ops.memory_gather import COALESCE, OUT_OF_BOUNDS


@recipe("tile.mgather")
def _mgather(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, tensor, type_ = k.t, bound["mem"], tile_type(call)
    by_row = chosen(bound["coalesce"], COALESCE, "coalesce") == "row"
    idx = bound["idx"]
    asked = k.indices(bound["valid_shape"]) if bound["valid_shape"] is not None else None
    if isinstance(idx, Tensor):
        shape = tuple(int(extent) for extent in idx.shape if isinstance(extent, int))
        idx = loaded(k, idx, TileType(shape, INT32, shape))
    own = tuple(idx.valid) if asked is None or by_row else tuple(asked)
    numbers = t.convert("arith.extui", idx.value, I64)
    if by_row:
        numbers, own = flat(t, numbers), (asked[0] if asked is not None else product(k, idx.valid),)
    axes = tensor.shape[:-1] if by_row else tensor.shape
    mode = chosen(bound["gather_oob"], OUT_OF_BOUNDS, "gather_oob")
    numbers, live = _bounded(k, call, numbers, live_of(k, numbers.shape, own), product(k, axes), mode)
    if not by_row:
        return k.tile(fetched(k, tensor, element_addresses(k, tensor, numbers), live), type_, own)
    shape = padded(type_.shape)
    valid: tuple[Extent, ...] = (own[0], asked[1] if asked is not None else type_.shape[1])
    part = k.inside(shape, (shape[0], valid[1]))
    rows = extents.spread(t, extents.along(t, live, 2, 0), shape)
    admitted = rows if part is None else t.simple("arith.andi", rows, part)
    addresses = row_addresses(k, tensor, numbers, shape, heads=len(axes))
    return k.tile(fetched(k, tensor, addresses, admitted), type_, valid)


def _bounded(k: Kernel, call: Call, numbers: Value, live: Value, count: Extent, mode: str) -> tuple[Value, Value]:
    """Return indices as a mode takes those that are too large, and which of them are taken."""
    t, end = k.t, extents.held(k.t, count)
    zero = t.integer(0, I64, numbers.shape)
    if mode == "zero":
        live = t.simple("arith.andi", live, t.compare("cmpi ult", numbers, t.splat(end, numbers.shape)))
    elif mode == "clamp":
        last = t.simple("arith.subi", end, t.integer(1))
        numbers = t.simple("arith.minsi", numbers, t.splat(last, numbers.shape))
    elif mode == "wrap":
        some = t.simple("arith.maxsi", end, t.integer(1))
        numbers = t.simple("arith.remsi", numbers, t.splat(some, numbers.shape))
    live = inside(k, call, numbers, live, count, "idx") if mode != "zero" else live
    return t.select(live, numbers, zero), live


@recipe("tile.mscatter")
def _mscatter(k: Kernel, call: Call, bound: Bound) -> Tensor:
    t, source, tensor = k.t, bound["src"], bound["output_tensor"]
    numbers = index_of(k, bound["idx"])
    live = live_of(k, numbers.shape, source.valid)
    live = inside(k, call, numbers, live, product(k, tensor.shape), "idx")
    safe = t.select(live, numbers, t.integer(0, I64, numbers.shape))
    last = last_of_each(t, flat(t, safe), flat(t, live))
    last = last if last.shape == live.shape else t.shaped("tt.reshape", last, live.shape)
    addresses = element_addresses(k, tensor, safe)
    written(k, tensor, addresses, in_memory(k, source.value, tensor.dtype), last)
    return tensor
