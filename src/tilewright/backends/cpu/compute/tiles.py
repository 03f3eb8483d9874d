"""Tile ops: recorded row by row where they can be, emitted on their own where they cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from tilewright.backends.cpu.compute.convert import as_element, to_elements
from tilewright.backends.cpu.compute.copies import (
    STORE,
    clear_bytes,
    copy,
    copy_turned,
    inside,
    known_or,
    misfit,
    tile_type,
    whole_extents,
    with_adjacent_rows,
)
from tilewright.backends.cpu.compute.extents import within
from tilewright.backends.cpu.compute.nodes import ColumnsNode, mapped
from tilewright.backends.cpu.compute.traced import Lanes, rounded
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.groups import StoreSink
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.memory import room_of
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import LoadNode, Place, Scalar, Tensor, Tile, static
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call
from tilewright.core.types import ScalarType, TensorType, TileType
from tilewright.core.visitor import statements, used
from tilewright.dtypes import INDEX
from tilewright.native.llvm import Value, i64
from tilewright.ops.windows import NARROW

__all__ = ["broadcast_valid", "copy", "recorded", "write"]


def broadcast_valid(shape: Sequence[int], operands: Sequence[Any], skipped: int = 0) -> tuple[Value, ...]:
    """Return the valid part of a broadcast, which the first operand that spans an axis decides.

    The last `skipped` axes of the operands take no part.
    """
    tiles = [operand for operand in operands if isinstance(operand, Tile)]
    rank = len(shape)
    valid: list[Value] = []
    for axis in range(-rank, 0):
        own = axis - skipped
        spanning = [tile for tile in tiles if -own <= len(tile.type.shape)]
        wide = [tile for tile in spanning if tile.type.shape[own] != 1]
        valid.append((wide or spanning)[0].valid[own])
    return tuple(valid)


def recorded(
    e: FunctionEmitter,
    type_: TileType,
    valid: tuple[Value, ...],
    function: Callable[..., Lanes],
    operands: Sequence[Tile | Scalar],
    dear: bool,
) -> Tile:
    """Record a function of the same element of each operand."""
    operands = [with_adjacent_rows(e, operand) if isinstance(operand, Tile) else operand for operand in operands]
    return mapped(e, type_, valid, function, operands, dear)


@lowers("tile:elementwise", "tile:expansion", "tile:mapped")
def _elementwise(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Record an op by its own NumPy meaning."""
    spec, type_ = call.op.spec, tile_type(call)
    operands = [bound[name] for name in spec.data if isinstance(bound[name], (Tile, Scalar))]
    is_packed = spec.family == "expansion" and spec.name.startswith("row") and not bound["vec"].is_column
    if is_packed:
        operands[1] = repeated_rows(e, bound["vec"], bound["x"])
    reference = spec.reference
    assert reference is not None

    given = [o.type.dtype if isinstance(o, Tile) else ScalarType(o.dtype) for o in operands]
    exact, types = bool(bound.get("high_precision")), spec.element_types(type_.dtype, given)

    def function(*lanes: Lanes) -> Lanes:
        given = (replace(lane, shared=None) if exact else lane for lane in lanes)
        elements = [as_element(lane, dtype) for lane, dtype in zip(given, types, strict=True)]
        while spec.chained and len(elements) > 2:
            elements[:2] = [rounded(reference(*elements[:2]), type_.dtype)]
        return reference(*elements)

    dear = spec.ulp > 0
    valid = broadcast_valid(type_.shape, operands)
    if is_packed and not operands[1].is_column:
        return mapped(e, type_, valid, function, [with_adjacent_rows(e, operands[0]), operands[1]], dear, goes_on=True)
    return recorded(e, type_, valid, function, operands, dear)


def repeated_rows(e: FunctionEmitter, rows: Tile, like: Tile) -> Tile:
    """Record a tile's rows again and again, as far as another tile is valid; of one valid column, a column."""
    dtype, (extent, columns) = rows.type.dtype, rows.type.shape
    if static(rows.valid[-1]) == 1:
        return Tile(TileType((extent, 1), dtype, (rows.type.valid[0], 1)), rows.valid, place=e.stored(rows))
    type_ = TileType(like.type.shape, dtype, like.type.valid)
    return e.record(Tile(type_, like.valid, node=ColumnsNode((with_adjacent_rows(e, rows),), period=columns)))


@lowers("tile.load")
def _load(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Record a load, cut to what the tensor holds."""
    tensor: Tensor = bound["tensor"]
    type_ = tile_type(call)
    if bound["mask"] is not None:
        from tilewright.backends.cpu.compute.masked import masked_load  # which few kernels have

        return masked_load(e, call, bound)
    if bound["pad"] is not None:
        from tilewright.backends.cpu.compute.padding import padded_load

        return padded_load(e, call, bound)
    wanted = bound["valid_shape"] or tuple(Scalar(i64(extent), INDEX) for extent in type_.shape)
    starts: list[Value] = []
    valid: list[Value] = []
    for axis, (offset, want, known) in enumerate(zip(bound["offsets"], wanted, type_.valid, strict=True)):
        start = e.index(offset)
        if isinstance(known, int):
            starts.append(start)
            valid.append(i64(known))
            continue
        first, extent = _found(e, call, axis, start, e.index(want), tensor.valid[axis], bound["clamp"])
        starts.append(first)
        valid.append(extent)
    source = call.args[0].type
    if isinstance(source, TensorType) and source.layout.is_permuted:
        from tilewright.backends.cpu.compute.permuted import permuted_load

        return permuted_load(e, type_, tensor, source.layout, starts, tuple(valid))
    tile = Tile(type_, tuple(valid), node=LoadNode(tensor=tensor, offsets=tuple(starts), strays=e.step.strays))
    return e.record(tile)


def _found(
    e: FunctionEmitter, call: Call, axis: int, start: Value, want: Value, have: Value, clamp: bool
) -> tuple[Value, Value]:
    """Return where a load starts along an axis and how much it finds there."""
    if want == have and static(start) == 0:
        return start, within(e, call, want, i64(tile_type(call).shape[axis]))
    first, left, asked = start, e.b.op("sub", have, start), want
    if e.checked:
        past, numbers = _past(e, want, have), (want, start, have)
        before, after = e.b.compare("icmp slt", start, i64(0)), e.b.compare("icmp sge", start, past)
        outside = e.b.op("or", before, after)
        exact = Exact(f"axis {axis}: a load of {{0}} element(s) at {{1}} starts outside 0 to {{2}}", lambda: numbers)
        e.fail(before if clamp else outside, f"axis {axis}: a load starts outside the tensor", call, exact)
        first, left = (e.b.select(outside, i64(0), value) for value in (first, left))
    if static(want) is None:
        want = within(e, call, want, i64(tile_type(call).shape[axis]))
    if static(want) == 1 and static(have) and not clamp:
        return first, want  # it starts where there is something: bags row by row take 0.59 ms, 0.78 by way of a copy
    cut = e.b.intrinsic("llvm.smin", want, left)
    return first, e.once((start, asked, have), lambda: e.b.intrinsic("llvm.smax", cut, i64(0)))


def _past(e: FunctionEmitter, want: Value, have: Value) -> Value:
    """Return the first place where no load starts: at zero even an empty axis begins, and at the end only nothing."""
    known = static(want)
    if known is not None:
        return e.b.intrinsic("llvm.smax", have, i64(1)) if known else e.b.op("add", have, i64(1))
    some = e.b.compare("icmp sgt", want, i64(0))
    return e.b.select(some, e.b.intrinsic("llvm.smax", have, i64(1)), e.b.op("add", have, i64(1)))


@lowers("tile.store")
def _store(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Record a store; one that does not fit is refused and writes nothing."""
    tile, shapes = bound["tile"], bound["shapes"]
    if bound["mask"] is not None:
        from tilewright.backends.cpu.compute.masked import masked_store

        masked_store(e, call, {**bound, "tile": without_empty_columns(e, tile)})
        return bound["output_tensor"]
    if shapes is not None:
        shape = tuple(static(extent) or 0 for extent in e.indices(shapes))
        from tilewright.backends.cpu.compute.views import reshaped

        tile = reshaped(e, call, tile, TileType(shape, tile.type.dtype, shape, tile.type.memory))
    write(e, call, tile, bound["output_tensor"], bound["offsets"], bound["atomic"])
    return bound["output_tensor"]


def write(
    e: FunctionEmitter, call: Call, tile: Tile, tensor: Tensor, offsets: Sequence[Scalar], atomic: AtomicType
) -> None:
    """Record the valid part of a tile being written to a tensor."""
    starts = e.indices(offsets)
    fits = fitting(e, call, tile.valid, tensor, offsets)
    if atomic is not AtomicType.Add and _is_turned(tile, tensor):
        e.flush()
        with nullcontext() if fits is None else e.b.when(fits):
            copy_turned(e, tile, tensor, starts)
        return
    tile = without_empty_columns(e, with_adjacent_rows(e, tile))
    add = atomic is AtomicType.Add
    e.record_store(StoreSink(tile, tensor=tensor, offsets=starts, add=add, atomic=e.is_concurrent, fits=fits))


def _is_turned(tile: Tile, tensor: Tensor) -> bool:
    """Return whether a tile is a matrix that lies column by column, and goes to rows of the same elements."""
    place = tile.place
    if place is None or len(tile.valid) != 2 or place.strides[0] != 1 or place.strides[1] == 1:
        return False
    return tensor.dtype == tile.type.dtype and tensor.strides[-1] == i64(1) and len(tensor.strides) > 1


def fitting(
    e: FunctionEmitter, call: Call, valid: Sequence[Value], tensor: Tensor, offsets: Sequence[Scalar]
) -> Value | None:
    """Return whether a store lies within its tensor, an error noted where not; None where that is certain."""
    sizes = [i64(1)] * (len(offsets) - len(valid)) + [*valid]
    windows = zip(offsets, sizes, tensor.shape, strict=True)
    unsure = [(e.index(o), size, extent) for o, size, extent in windows if not _surely_fits(o, size, extent)]
    fits = inside(e, *zip(*unsure, strict=True)) if unsure else None
    if fits is not None:
        exact = misfit(e, STORE, e.indices(offsets), sizes, tensor.shape)
        e.fail(e.negated(fits), f"a store does not fit its tensor\n{NARROW}", call, exact)
    return fits


def _surely_fits(offset: Scalar, size: Value, extent: Value) -> bool:
    reach, most, have = offset.reach, static(size), static(extent)
    return reach is not None and most is not None and have is not None and 0 <= reach[0] and reach[1] + most <= have


def without_empty_columns(e: FunctionEmitter, tile: Tile) -> Tile:
    """Return a tile that has no rows where, being one column wide, it has no column."""
    if not tile.is_column or static(tile.valid[-1]) == 1:
        return tile
    there = e.b.compare("icmp sgt", tile.valid[-1], i64(0))
    place = e.stored(tile)
    if len(tile.valid) > 1:
        return Tile(tile.type, (e.b.select(there, tile.valid[0], i64(0)), *tile.valid[1:]), place=place)
    rows = e.b.select(there, i64(1), i64(0))
    row = TileType((1, *tile.type.shape), tile.type.dtype, (None, *tile.type.valid), tile.type.memory)
    return Tile(row, (rows, *tile.valid), place=Place(place.pointer, (0, *place.strides)))


@lowers("tile.create")
def _create(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_ = tile_type(call)
    tile = e.fresh(type_, whole_extents(type_))
    if _is_put_together(e, call):
        assert tile.place is not None
        clear_bytes(e, tile.place.pointer, room_of(type_))  # parts that overlap may count for all of it
    return tile


def _is_put_together(e: FunctionEmitter, call: Call) -> bool:
    """Return whether parts of tiles are written in the function that makes one."""
    calls = (expr for stmt in statements(e.function.body) for expr in used(stmt) if isinstance(expr, Call))
    return any(isinstance(c.type, TileType) and c.op.spec.writes is not None for c in calls)


@lowers("tile.full", "tile.expands")
def _full(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_ = tile_type(call)
    value: Scalar = bound.get("value") or bound["scalar"]
    valid = bound["target"].valid if "target" in bound else whole_extents(type_)
    if bound.get("valid_shape") is not None:
        asked = zip(e.indices(bound["valid_shape"]), valid, strict=True)
        valid = known_or(type_, [want if static(want) is not None else within(e, call, want, n) for want, n in asked])
    return mapped(e, type_, valid, to_elements(type_.dtype), [value])
