"""Shares: the places of a tensor that fall to one of several workers, each of which is given all indices."""

from __future__ import annotations

from tilewright.backends.cpu.compute.blocks import share_of
from tilewright.backends.cpu.compute.copies import rows_of
from tilewright.backends.cpu.compute.places import Places, Visit
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import static
from tilewright.native.llvm import I32, I64, Value, i64


def each_of_share(e: FunctionEmitter, places: Places, visit: Visit) -> None:
    """Emit something at each place that falls to the current block, in order; a worker alone goes through all."""
    if places.by_row:
        _listed(e, places, visit)
        return
    alone = e.b.compare("icmp eq", e.block_count, i64(1))
    with e.b.when(alone):
        places.each(visit)
    with e.b.when(e.negated(alone)):
        _listed(e, places, visit)


def _listed(e: FunctionEmitter, places: Places, visit: Visit) -> None:
    """Emit a list of the indices of a row that are in the share, then something at each of them."""
    count = static(places.index.shape[-1])
    assert count is not None
    part = e.arena.take(4 * count)
    listed, found = e.address(part[0]), e.b.slot(I64)
    first, size = share_of(e, places.limit)
    with rows_of(e, places.extents[:-1]) as rows:
        e.b.store(i64(0), found, 8)
        with e.b.loop(i64(0), places.extents[-1], i64(1)) as k:
            position = (*rows, k)
            places.where(position, lambda: _note(e, listed, found, k, _beyond(e, places.number(position), first), size))
        with e.b.loop(i64(0), e.b.load(I64, found, 8), i64(1)) as at:
            position = *rows, e.b.convert("zext", e.b.load(I32, e.b.offset(listed, at, I32), 4), I64)
            visit(position, places.address(places.number(position), is_direct=places.axes == 1))
    e.arena.give_back(part)


def _beyond(e: FunctionEmitter, number: Value, first: Value) -> Value:
    return e.b.op("sub", number, first)


def _note(e: FunctionEmitter, listed: Value, found: Value, k: Value, beyond: Value, size: Value) -> None:
    """Emit the noting of an index, which the next one overwrites unless it is in the share."""
    count = e.b.load(I64, found, 8)
    e.b.store(e.b.convert("trunc", k, I32), e.b.offset(listed, count, I32), 4)
    own = e.b.convert("zext", e.b.compare("icmp ult", beyond, size), I64)
    e.b.store(e.b.op("add", count, own), found, 8)
