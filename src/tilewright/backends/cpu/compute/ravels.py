"""Raveled indices: numbers that count the elements of a matrix, from an index along each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.cpu.compute.addresses import moved, view_of
from tilewright.backends.cpu.compute.copies import known_or, rows_of, tile_type
from tilewright.backends.cpu.compute.element_gathers import adjacent
from tilewright.backends.cpu.compute.indexed import number, numbers, pointing_outside, scaled, strips
from tilewright.backends.cpu.compute.joined_gathers import raveled as joined_ravel
from tilewright.backends.cpu.compute.storage import splat, store
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Scalar, Tile, static
from tilewright.core.expr import Call
from tilewright.native.llvm import I64, TRUE, Value, i64, vector
from tilewright.ops.indices import outside


@lowers("tile.ravel_index")
def _ravel(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    names = ("outer", "inner")
    given: list[Tile | Scalar] = [bound[name] for name in names]
    limits, type_ = e.indices(bound["extents"]), tile_type(call)
    mask: Tile | None = bound["mask"]
    tiles = [each for each in (*given, mask) if isinstance(each, Tile)]
    valid = known_or(type_, _extents(tiles, len(type_.shape)))
    if e.step.joins:
        return joined_ravel(e, call, given, limits, valid)
    if mask is not None:
        e.look(call, "mask", mask, mask.valid)
    read, let_through = [_reader(e, each) for each in given], None if mask is None else _reader(e, mask)
    result, width = e.fresh(type_, valid), e.program.target.vector_bits // 64
    made, most = view_of(e, result), [_Most(e, width) for _ in names]
    with rows_of(e, valid[:-1]) as rows:

        def some(column: Value, width: int, there: Value | None) -> None:
            position = (*rows, column)
            found = [index(position, there) for index in read]
            if let_through is not None:
                chosen = e.b.compare("icmp ne", let_through(position, there), splat(vector(I64, width), 0))
                found = [e.b.select(chosen, index, splat(index.type, 0)) for index in found]
            for seen, index in zip(most, found, strict=True):
                seen.note(index)
            raveled = e.b.op("add", scaled(e, found[0], limits[1]), found[1])
            store(e.b, raveled, moved(e, made, position), 8, there)

        strips(e, valid[-1], width, some)
    for name, seen, limit in zip(names, most, limits, strict=True):
        _stop_outside(e, call, name, seen.found(), limit, valid)
    return result


class _Most:
    """The largest of some indices, negative ones being larger than others."""

    def __init__(self, e: FunctionEmitter, width: int) -> None:
        self.b, self.type = e.b, vector(I64, width)
        self.cell = e.b.slot(self.type)
        e.b.store(Value(self.type, "zeroinitializer"), self.cell, 64)

    def note(self, found: Value) -> None:
        """Emit a look at some indices."""
        self.b.store(self.b.intrinsic("llvm.umax", self.b.load(self.type, self.cell, 64), found), self.cell, 64)

    def found(self) -> Value:
        """Return the largest that was seen, zero where none was."""
        return self.b.intrinsic("llvm.vector.reduce.umax", self.b.load(self.type, self.cell, 64), returns=I64)


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


def _reader(e: FunctionEmitter, given: Tile | Scalar) -> Callable[[Sequence[Value], Value | None], Value]:
    """Return what gives the indices from a position on, as many as a vector holds: one serves a whole axis."""
    width = e.program.target.vector_bits // 64
    if isinstance(given, Scalar):
        index = e.b.splat(e.index(given), width)
        return lambda position, there: index
    view, shape = view_of(e, adjacent(e, given)), given.type.shape

    def read(position: Sequence[Value], there: Value | None) -> Value:
        own = position[len(position) - len(shape) :]
        at = moved(e, view, [i64(0) if extent == 1 else index for index, extent in zip(own, shape, strict=True)])
        if shape[-1] == 1:
            return e.b.splat(number(e, at, view.dtype), width)
        return numbers(e, at, view.dtype, width, there, 64)

    return read
