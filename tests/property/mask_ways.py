"""Mask ways: how bools come into random programs, to choose by and to load and store by."""

from __future__ import annotations

from collections.abc import Sequence

from property.operands import Shape, operand, some_dtype, some_shape, tensor_of, tile_of
from property.values import Value, dtype_of, shape_of
from property.way import called, cut_short, way
from property.writer import DTYPES, Writer

from tilewright import dtypes as dt
from tilewright.core.op import Op


@way("tile.where", "tensor.where")
def _where(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w), some_dtype(w, op.spec.accepts)
    mask = operand(w, op.kind, shape, dt.BOOL)
    x = operand(w, op.kind, shape, dtype)
    sides = [x.name, operand(w, op.kind, shape, dtype).name if w.chance(50) else w.scalar(dtype)]
    return called(w, op, mask.name, *(sides if w.chance(70) else sides[::-1]))


@way("tile.clamp", "tensor.clamp")
def _clamp(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w), some_dtype(w, op.spec.accepts)
    bounds = [operand(w, op.kind, shape, dtype).name if w.chance(40) else w.scalar(dtype) for _ in range(2)]
    x = operand(w, op.kind, shape, dtype)
    return called(w, op, x.name, *w.pick([*[bounds] * 4, bounds[:1], [f"max={bounds[1]}"]]))


def masked_load(w: Writer) -> Value | None:
    """Load from a window that may lie outside a tensor, and admit what does not."""
    shape = some_shape(w)
    source = tensor_of(w, shape, w.pick(DTYPES))
    offsets, mask = _admitted(w, shape, shape_of(source))
    pad = f", pad={w.literal(dtype_of(source))}" if w.chance(50) and dtype_of(source) != dt.BOOL else ""
    return w.make(f"pl.load({source.name}, [{offsets}], {list(shape)}, mask={mask}{pad})", "t", keep=True)


def masked_store(w: Writer, tile: Value, target: Value) -> None:
    """Store a tile to a window that may lie outside a tensor, and admit what does not."""
    tile = cut_short(w, tile) if w.chance(40) else tile
    offsets, mask = _admitted(w, shape_of(tile), shape_of(target))
    w.act(f"pl.store({tile.name}, [{offsets}], {target.name}, mask={mask})")


def _admitted(w: Writer, shape: Shape, have: Shape) -> tuple[str, str]:
    """Return offsets, and a mask of the places from there on that lie inside extents; often of only some of them."""
    offsets = [f"({w.index(extent)[0]} - {w.number(0, 3)})" for extent in have]
    inside = [part for axis, offset in enumerate(offsets) for part in _bounds(shape, axis, offset, have[axis])]
    if w.chance(40):
        inside.append(tile_of(w, shape, dt.BOOL).name)
    return ", ".join(offsets), " & ".join(inside)


def _bounds(shape: Shape, axis: int, offset: str, extent: int) -> Sequence[str]:
    extents = [size if each == axis else 1 for each, size in enumerate(shape)]
    place = f"({offset} + pl.iota({extents}, axis={axis}))"
    return f"({place} >= 0)", f"({place} < {extent})"
