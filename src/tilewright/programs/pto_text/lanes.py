"""Lanes: the halves of a value that two vector cores share, which one computes here, and their join."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.expr import Call
from tilewright.core.types import ShapedType, TileType, static_shape
from tilewright.dtypes import INDEX
from tilewright.ops.lanes import AXES, half
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Tensor, Tile
from tilewright.programs.pto_text.words import Given, in_vec, matrix, part_of, put_over, refuse, result, within, writes
from tilewright.programs.pto_text.writer import Writer


@writes("tile.aiv_shard", "tensor.aiv_shard")
def _shard(w: Writer, call: Call, given: Given) -> Tile | Tensor:
    x: Tile | Tensor = given["x"]
    split: int = given["split"]
    if split == 0:
        return x
    type_, source = call.type, call.args[0].type
    assert isinstance(type_, ShapedType) and isinstance(source, ShapedType)
    axis, shape = AXES[split], static_shape(type_.shape)
    start = w.constant(given["lane"] * half(static_shape(source.shape)[axis], split, 0))
    at = (start, w.constant(0)) if axis == 0 else (w.constant(0), start)
    if isinstance(x, Tensor):
        extents = (*(w.constant(extent) for extent in shape),)
        offsets = (*(computed(w, "add", [a, b], INDEX) for a, b in zip(x.offsets, at, strict=True)),)
        there = zip(x.part, at, extents, strict=False)
        part = (*(within(w, computed(w, "sub", [have, first], INDEX), extent) for have, first, extent in there),)
        return replace(x, shape=extents, offsets=offsets, is_whole=False, part=part)
    tile = in_vec(w, x)
    left = [computed(w, "sub", [have, first], INDEX) for have, first in zip(tile.valid, at, strict=True)]
    sizes = [within(w, have, w.constant(extent)) for have, extent in zip(left, shape, strict=True)]
    out, rows, cols = result(w, call, (sizes[0], sizes[1])), *matrix(call)[0]
    there = min(rows, tile.shape[0] - int(at[0].known or 0)), min(cols, tile.shape[1] - int(at[1].known or 0))
    part = part_of(w, tile, at, there, out.valid)
    if there == out.shape:
        return w.op("tmov", [part], out)
    return put_over(w, out, part, (w.constant(0), w.constant(0)))


@writes("tile.aic_gather", "tensor.aic_gather")
def _gather(w: Writer, call: Call, given: Given) -> Tile | Tensor:
    split: int = given["split"]
    if split == 0:
        return given["x"]
    refuse(call, isinstance(given["x"], Tensor), "of tensors", "load both parts, and join the tiles")
    refuse(
        call, None in _known(call), "of parts of which only the run knows how much is valid", "fill both up: pl.fillpad"
    )
    first, other, zero = in_vec(w, given["x"]), given["other"], w.constant(0)
    whole = put_over(w, result(w, call, first.valid), first, (zero, zero))
    if other is None:
        return whole
    start = w.constant(first.shape[AXES[split]])
    return put_over(w, whole, in_vec(w, other), (start, zero) if AXES[split] == 0 else (zero, start))


def _known(call: Call) -> list[int | None]:
    """Return how much of what parts are joined is valid, None for what only the run knows."""
    types = [type_ for type_ in (call.type, *(arg.type for arg in call.args)) if isinstance(type_, TileType)]
    return [extent if isinstance(extent, int) else None for type_ in types for extent in type_.valid]
