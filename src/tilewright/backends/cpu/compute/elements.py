"""Elements: single ones read from a tile and written to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tilewright.backends.cpu.compute.convert import as_element, bits_of, number_of
from tilewright.backends.cpu.compute.copies import copy_whole, element_at, tile_type
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import Scalar, Tile, static
from tilewright.core.expr import Call
from tilewright.native.llvm import Value, i64


@lowers("tile.read")
def _read(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    tile, dtype = bound["x"], bound["x"].type.dtype
    place = e.stored(tile)
    indices = checked(e, call, tile, bound["indices"])
    e.look(call, "x", tile, [e.b.op("add", index, i64(1)) for index in indices], unless=tile.is_scattered)
    pointer = element_at(e, dtype, place, indices)
    raw = e.b.load(memory_type(dtype), pointer, dtype.get_byte())
    return Scalar(number_of(e.b, raw, dtype).value, dtype)


@lowers("tile.write")
def _write(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    tile, given = bound["x"], bound["value"]
    dtype = tile.type.dtype
    e.stored(tile)
    result = e.fresh(tile_type(call), tile.valid)
    copy_whole(e, tile, result)
    assert result.place is not None
    pointer = element_at(e, dtype, result.place, checked(e, call, tile, bound["indices"]))
    lane = as_element(Lanes(e.b, given.value, given.dtype), dtype)
    e.b.store(bits_of(lane), pointer, dtype.get_byte())
    return result


def checked(e: FunctionEmitter, call: Call, tile: Tile, indices: Sequence[Scalar]) -> list[Value]:
    """Return the indices of an element; one outside the tile is an error and means zero."""
    safe: list[Value] = []
    for axis, (index, extent) in enumerate(zip(e.indices(indices), tile.type.shape, strict=True)):
        if static(index) is None and e.checked:
            outside = e.b.compare("icmp uge", index, i64(extent))
            exact = Exact(f"axis {axis}: index {{0}} lies outside 0 to {extent}", partial(tuple, [index]))
            e.fail(outside, "an index lies outside its tile", call, exact)
            index = e.b.select(outside, i64(0), index)
        safe.append(index)
    return safe
