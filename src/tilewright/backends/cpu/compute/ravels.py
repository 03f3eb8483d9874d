"""Raveled indices: numbers that count the elements of a matrix, from an index along each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.cpu.compute.addresses import moved, view_of
from tilewright.backends.cpu.compute.copies import known_or, rows_of, tile_type
from tilewright.backends.cpu.compute.indexed import number, pointing_outside
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Scalar, Tile, static
from tilewright.core.expr import Call
from tilewright.native.llvm import I64, TRUE, Value, i64
from tilewright.ops.indices import outside


@lowers("tile.ravel_index")
def _ravel(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    names = ("outer", "inner")
    given: list[Tile | Scalar] = [bound[name] for name in names]
    limits, type_ = e.indices(bound["extents"]), tile_type(call)
    mask: Tile | None = bound["mask"]
    tiles = [each for each in (*given, mask) if isinstance(each, Tile)]
    valid = known_or(type_, _extents(tiles, len(type_.shape)))
    if mask is not None:
        e.look(call, "mask", mask, mask.valid)
    read, let_through = [_reader(e, each) for each in given], None if mask is None else _reader(e, mask)
    result = e.fresh(type_, valid)
    made, bad = view_of(e, result), [e.b.slot(I64) for _ in names]
    for cell in bad:
        e.b.store(i64(0), cell, 8)
    with rows_of(e, valid) as position:
        found = [index(position) for index in read]
        if let_through is not None:
            chosen = e.b.compare("icmp ne", let_through(position), i64(0))
            found = [e.b.select(chosen, index, i64(0)) for index in found]
        for cell, index in zip(bad, found, strict=True):
            e.b.store(e.b.intrinsic("llvm.umax", e.b.load(I64, cell, 8), index), cell, 8)
        raveled = e.b.op("add", e.b.op("mul", found[0], limits[1]), found[1])
        e.b.store(raveled, moved(e, made, position), 8)
    for name, cell, limit in zip(names, bad, limits, strict=True):
        _stop_outside(e, call, name, e.b.load(I64, cell, 8), limit, valid)
    return result


def _stop_outside(e: FunctionEmitter, call: Call, name: str, most: Value, limit: Value, valid: Sequence[Value]) -> None:
    """Emit the end of the function where the largest of some indices, if there are any, is not below a limit."""
    some = TRUE
    for extent in valid:
        if static(extent) is None:
            some = e.b.op("and", some, e.b.compare("icmp sgt", extent, i64(0)))
    if e.checked and not any(static(extent) == 0 for extent in valid):
        e.stop(
            e.b.op("and", some, e.b.compare("icmp uge", most, limit)),
            outside(name),
            call,
            pointing_outside(name, most, limit),
        )


def _extents(tiles: Sequence[Tile], rank: int) -> tuple[Value, ...]:
    """Return the valid part of a broadcast, which the first tile that spans an axis decides."""
    extents: list[Value] = []
    for axis in range(-rank, 0):
        there = [tile for tile in tiles if -axis <= len(tile.valid)]
        wide = [tile for tile in there if tile.type.shape[axis] != 1]
        extents.append((wide or there)[0].valid[axis])
    return tuple(extents)


def _reader(e: FunctionEmitter, given: Tile | Scalar) -> Callable[[Sequence[Value]], Value]:
    """Return what gives the index at a position: one serves a whole axis."""
    if isinstance(given, Scalar):
        index = e.index(given)
        return lambda _: index
    view, shape = view_of(e, given), given.type.shape

    def read(position: Sequence[Value]) -> Value:
        own = position[len(position) - len(shape) :]
        at = [i64(0) if extent == 1 else index for index, extent in zip(own, shape, strict=True)]
        return number(e, moved(e, view, at), view.dtype)

    return read
