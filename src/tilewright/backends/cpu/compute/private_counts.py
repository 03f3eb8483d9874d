"""Private counts: sums into few elements, gathered in copies of them that are added to the tensor at the end.

Counting waits for the count before where both go to one element: the copies take turns, so that neighbours do not meet.
Other threads are met once per element, and no more. Only integers are counted so, whose sums have no order.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tilewright.backends.cpu.compute import atomics
from tilewright.backends.cpu.compute.addresses import counted
from tilewright.backends.cpu.compute.copies import clear_bytes, rows_of
from tilewright.backends.cpu.compute.indexed import raw_type, single
from tilewright.backends.cpu.compute.places import Places, Position
from tilewright.backends.cpu.compute.traced import Lanes, to_memory
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.native.llvm import Value, i64
from tilewright.passes.shares import COPIES


def _size(tensor: Tensor) -> int | None:
    extents = [static(extent) for extent in tensor.shape]
    known = [extent for extent in extents if extent is not None]
    return prod(known) if len(known) == len(extents) else None


def count_privately(e: FunctionEmitter, places: Places, given: Callable[[Position], Lanes]) -> None:
    """Emit the counting of all places, and the adding of what has been counted."""
    tensor, size = places.tensor, _size(places.tensor)
    assert size is not None
    part = e.arena.take(COPIES * size * tensor.dtype.get_byte())
    copies = e.address(part[0])
    clear_bytes(e, copies, COPIES * size * tensor.dtype.get_byte())
    type_, nbytes = raw_type(tensor.dtype), tensor.dtype.get_byte()
    with rows_of(e, places.extents[:-1]) as rows:
        turn = iter(range(1 << 30))

        def one(column: Value) -> None:
            position = (*rows, column)

            def add() -> None:
                start = e.b.offset(copies, i64(next(turn) % COPIES * size), type_)
                at = e.b.offset(start, places.number(position), type_)
                e.b.store(e.b.op("add", e.b.load(type_, at, nbytes), to_memory(given(position))), at, nbytes)

            places.where(position, add)

        single(e, places.extents[-1], 2 * COPIES, one)
    with e.b.loop(i64(0), i64(size), i64(1)) as number:
        _add(e, tensor, copies, number, size)
    e.arena.give_back(part)


def _add(e: FunctionEmitter, tensor: Tensor, copies: Value, number: Value, size: int) -> None:
    """Emit the adding of one element of all copies to the tensor's."""
    type_, nbytes = raw_type(tensor.dtype), tensor.dtype.get_byte()
    start = e.b.offset(copies, number, type_)
    sums = [e.b.load(type_, e.b.offset(start, i64(turn * size), type_), nbytes) for turn in range(COPIES)]
    total = sums[0]
    for other in sums[1:]:
        total = e.b.op("add", total, other)
    place = e.b.offset(tensor.pointer, counted(e, number, tensor, len(tensor.shape)), type_)
    if not e.is_concurrent:
        e.b.store(e.b.op("add", e.b.load(type_, place, nbytes), total), place, nbytes)
        return
    with e.b.when(e.b.compare("icmp ne", total, Value(type_, "0"))):
        atomics.change(e.b, place, "add", Lanes(e.b, total, tensor.dtype))
