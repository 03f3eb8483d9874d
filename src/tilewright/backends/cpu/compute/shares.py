"""Shares: the rows of a tensor that fall to one of several workers, each of which is given all indices."""

from __future__ import annotations

from tilewright.backends.cpu.compute.places import Places, Visit
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import static
from tilewright.native.llvm import I32, I64, Value, i64


def each_of_share(e: FunctionEmitter, places: Places, visit: Visit) -> None:
    """Emit something at each place that falls to the current block, in order."""
    count = static(places.index.shape[0])
    assert count is not None
    part = e.arena.take(4 * count)
    listed, found = e.address(part[0]), e.b.slot(I64)
    e.b.store(i64(0), found, 8)
    first, size = _share(e, places.tensor.shape[0])
    with e.b.loop(i64(0), places.extents[0], i64(1)) as k:
        places.where((k,), lambda: _note(e, listed, found, k, e.b.op("sub", places.number((k,)), first), size))
    with e.b.loop(i64(0), e.b.load(I64, found, 8), i64(1)) as at:
        k = e.b.convert("zext", e.b.load(I32, e.b.offset(listed, at, I32), 4), I64)
        visit((k,), places.address(places.number((k,))))
    e.arena.give_back(part)


def _share(e: FunctionEmitter, rows: Value) -> tuple[Value, Value]:
    """Return the first row that falls to the current block, and how many do."""
    after = e.b.op("add", e.block_index, i64(1))
    first, end = (e.b.op("udiv", e.b.op("mul", rows, number), e.block_count) for number in (e.block_index, after))
    return first, e.b.op("sub", end, first)


def _note(e: FunctionEmitter, listed: Value, found: Value, k: Value, beyond: Value, size: Value) -> None:
    """Emit the noting of an index, which the next one overwrites unless it is in the share."""
    count = e.b.load(I64, found, 8)
    e.b.store(e.b.convert("trunc", k, I32), e.b.offset(listed, count, I32), 4)
    own = e.b.convert("zext", e.b.compare("icmp ult", beyond, size), I64)
    e.b.store(e.b.op("add", count, own), found, 8)
