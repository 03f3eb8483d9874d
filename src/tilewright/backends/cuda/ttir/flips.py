"""Flips: tiles taken apart, in the opposite order along axes, and rows by their indices."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.folds import flat
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.picks import counted, picked, stretch
from tilewright.backends.cuda.ttir.places import index_of, inside, live_of, product
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I64
from tilewright.backends.cuda.ttir.tiles import tile_type
from tilewright.backends.cuda.ttir.values import Tile
from tilewright.core.expr import Call


@recipe("tile.flip")
def _flip(k: Kernel, call: Call, bound: Bound) -> Tile:
    source, type_, axis = bound["x"], tile_type(call), bound["axis"]
    rank, value = len(type_.shape), source.value
    named = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    for each in {axis % rank for axis in named}:
        last = extents.minus(k.t, source.valid[each], 1)
        value = stretch(k.t, value, each, last, value.shape[each], -1)
    return k.tile(value, type_, source.valid)


@recipe("tile.pick")
def _pick(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, source, indices, type_ = k.t, bound["x"], bound["indices"], tile_type(call)
    rank, numbers = len(source.type.shape), index_of(k, indices)
    by_row, axis = rank > 1, bound["axis"] % rank
    numbers = flat(t, numbers) if by_row else numbers
    valid = [product(k, indices.valid)] if by_row else list(indices.valid)
    fit = inside(k, call, numbers, live_of(k, numbers.shape, valid), source.valid[axis], "indices")
    safe = t.select(fit, numbers, t.integer(0, I64, numbers.shape))
    if not by_row:
        return k.tile(counted(t, source.value, source.type.shape, safe), type_, valid)
    value = picked(t, source.value, extents.along(t, safe, rank, axis), axis)
    return k.tile(value, type_, [*source.valid[:axis], *valid, *source.valid[axis + 1 :]])
