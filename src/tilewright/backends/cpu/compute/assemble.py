"""Assembly: a tile with another written into a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilewright.backends.cpu.compute.copies import (
    STORE,
    as_tensor,
    copy_elements,
    copy_whole,
    inside,
    known_or,
    misfit,
    part,
    tile_type,
    whole_extents,
    with_adjacent_rows,
)
from tilewright.backends.cpu.compute.tiles import without_empty_columns
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.groups import Group, StoreSink
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Place, Tile, contiguous
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Var
from tilewright.native.llvm import Value, i64


@lowers("tile.assemble")
def _assemble(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Write the source's valid part over the target, or a copy of it; one that does not fit writes nothing."""
    target, source = bound["target"], bound["source"]
    rank = len(target.type.shape)
    e.stored(source)
    e.stored(target)
    starts = e.indices(bound["offset"])
    sizes = (*(i64(1),) * (rank - len(source.valid)), *source.valid)
    fits = inside(e, starts, sizes, whole_extents(target.type))
    if fits is not None:
        exact = misfit(e, STORE, starts, sizes, whole_extents(target.type))
        e.fail(e.negated(fits), "a store does not fit its tile", call, exact)
        starts = tuple(e.b.select(fits, start, i64(0)) for start in starts)
        sizes = tuple(e.b.select(fits, size, i64(0)) for size in sizes)
    valid = _reached(e, call, target, starts, sizes)
    result = changing(e, call, target, "target")
    result.type, result.valid = tile_type(call), valid
    if source.type.dtype == target.type.dtype:
        _write(e, source, result, starts, sizes)
    else:
        _round(e, source, result, starts, fits)
    return result


def _write(e: FunctionEmitter, source: Tile, result: Tile, starts: Sequence[Value], sizes: Sequence[Value]) -> None:
    place, dtype = e.stored(source), result.type.dtype
    assert result.place is not None
    spread = Place(place.pointer, (*(0,) * (len(sizes) - len(source.valid)), *place.strides))
    copy_elements(e, dtype, spread, part(e, dtype, result.place, starts), sizes)


def _round(e: FunctionEmitter, source: Tile, result: Tile, starts: Sequence[Value], fits: Value | None) -> None:
    """Emit the writing of elements that are rounded on the way."""
    kept, result.owners = result.owners, [*source.owners]  # emitting gives back what nobody reads
    rows = without_empty_columns(e, with_adjacent_rows(e, source))
    e.run(Group(rows.rows, [], [StoreSink(rows, tensor=as_tensor(result), offsets=tuple(starts), fits=fits)]))
    result.owners = kept


def _reached(
    e: FunctionEmitter, call: Call, target: Tile, starts: Sequence[Value], sizes: Sequence[Value]
) -> tuple[Value, ...]:
    """Return how far a tile is valid once a part has been written into it."""
    known = tile_type(call).valid
    if None not in known:
        return known_or(tile_type(call), target.valid)
    some = reduce(lambda x, y: e.b.op("and", x, y), [e.b.compare("icmp sgt", size, i64(0)) for size in sizes])
    ends = [
        e.b.intrinsic("llvm.smax", held, e.b.select(some, e.b.op("add", start, size), i64(0)))
        for held, start, size in zip(target.valid, starts, sizes, strict=True)
    ]
    return known_or(tile_type(call), ends)


def changing(e: FunctionEmitter, call: Call, tile: Tile, operand: str = "") -> Tile:
    """Return a packed tile to write to that holds what another does: its own memory, or a copy where it is read later.

    Whatever else the op reads has to be in memory already.
    """
    name = arguments(call)[operand or call.op.spec.writes or ""]
    place = e.stored(tile)
    e.flush()  # what is recorded may read it as it is
    is_last = isinstance(name, Var) and e.readers(tile) == 1 and e.last_use.ends_at(call, (name, *tile.owners))
    if is_last and place.strides == contiguous(tile.type.shape):
        return Tile(tile.type, tile.valid, place, None, tile.owners)
    result = e.fresh(tile.type, tile.valid)
    copy_whole(e, tile, result)
    return result
