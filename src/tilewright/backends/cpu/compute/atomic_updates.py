"""Atomic updates: elements and rows of a tensor changed where indices say.

Where nobody else can come between, elements change with plain instructions, and rows several elements at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute import atomics
from tilewright.backends.cpu.compute.addresses import moved, read_of, view_of
from tilewright.backends.cpu.compute.convert import as_element
from tilewright.backends.cpu.compute.copies import known_or, rows_of, tile_type, whole_extents
from tilewright.backends.cpu.compute.indexed import at_column, single
from tilewright.backends.cpu.compute.places import Places, Position, Visit
from tilewright.backends.cpu.compute.private_counts import count_privately
from tilewright.backends.cpu.compute.scatters import covering
from tilewright.backends.cpu.compute.shares import each_of_share
from tilewright.backends.cpu.compute.traced import Lanes, combine, from_memory, rounded, to_memory
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import Scalar, Tensor, Tile, static
from tilewright.core.expr import Call
from tilewright.core.op import OPS
from tilewright.core.stmt import AssignStmt
from tilewright.core.visitor import statements
from tilewright.dtypes import DataType
from tilewright.native.llvm import FALSE, TRUE, Value, i64, vector
from tilewright.ops.atomics import EXCHANGE, SWAP
from tilewright.passes.shares import is_counting


@lowers(*(name for name, op in OPS.items() if op.spec.is_atomic))
def _update(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_, given = tile_type(call), bound["values"]
    places = Places(e, call, bound, given.valid if isinstance(given, Tile) else None)
    operands = [Operand(e, bound[name], type_.dtype) for name in ("compare", "values") if name in bound]
    rest = [*given.valid[1:]] if isinstance(given, Tile) else [*whole_extents(type_)[1:]]
    extents = (*places.extents, *(rest if places.by_row else ()))
    if isinstance(bound.get("compare"), Tile):
        covering(e, call, "compare", bound["compare"], extents, "element")
    e.flush()  # what is recorded may read the tensor
    places.check()
    result = Tile(type_, known_or(type_, extents))
    if is_read(e, call):
        result = e.fresh(type_, result.valid)
    elif is_counting(call):
        count_privately(e, places, operands[-1].lanes)
        return result
    Update(e, call, places, operands, view_of(e, result) if result.place else None).emit(extents)
    return result


def is_read(e: FunctionEmitter, call: Call) -> bool:
    """Return whether anybody reads what a call gives."""
    assigned = (stmt for stmt in statements(e.function.body) if isinstance(stmt, AssignStmt))
    return any(e.uses.get(stmt.var, 0) for stmt in assigned if stmt.value is call)


class Operand:
    """What is given for places: a number for all of them, or elements of a tile."""

    def __init__(self, e: FunctionEmitter, given: Tile | Scalar, dtype: DataType) -> None:
        self.e, self.dtype = e, dtype
        self.view = read_of(e, given) if isinstance(given, Tile) else None
        self.number = None if isinstance(given, Tile) else as_element(Lanes(e.b, given.value, given.dtype), dtype)

    @property
    def stride(self) -> Value:
        """How far neighbours along a row are apart."""
        return i64(1) if self.view is None else self.view.strides[-1]

    def lanes(self, position: Position, count: int = 1) -> Lanes:
        """Emit the reading of neighbours along a row, from a position on."""
        b = self.e.b
        if self.view is None:
            assert self.number is not None
            return Lanes(b, b.splat(self.number.value, count), self.dtype)
        pointer = moved(self.e, self.view, position)
        return from_memory(
            b, b.load(vector(memory_type(self.dtype), count), pointer, self.dtype.get_byte()), self.dtype
        )


class Update:
    """One update being emitted."""

    def __init__(
        self, e: FunctionEmitter, call: Call, places: Places, operands: Sequence[Operand], old: Tensor | None
    ) -> None:
        self.e, self.name = e, call.op.spec.combine
        self.places, self.operands, self.old = places, operands, old
        self.tensor: Tensor = places.tensor

    def emit(self, extents: Sequence[Value]) -> None:
        """Emit the update of all places."""
        if self.old is not None and self.places.mask is not None:
            self._clear(extents)
        visit = self._rows(extents) if self.places.by_row else self._element
        if self.e.in_shares:
            each_of_share(self.e, self.places, visit)
        else:
            self.places.each(visit)

    def _rows(self, extents: Sequence[Value]) -> Visit:
        *middle, columns = extents[1:]

        def row(position: Position, pointer: Value) -> None:
            self._row(position, pointer, middle, columns)

        return row

    def _clear(self, extents: Sequence[Value]) -> None:
        """Emit zeros for what a mask leaves out."""
        old = self.old
        assert old is not None
        with rows_of(self.e, extents) as position:
            zero = Value(f"i{8 * old.dtype.get_byte()}", "0")
            self.e.b.store(zero, moved(self.e, old, position), old.dtype.get_byte())

    def _row(self, position: Position, pointer: Value, middle: Sequence[Value], columns: Value) -> None:
        e, tensor = self.e, self.tensor
        with rows_of(e, middle) as inner:
            at = Tensor(pointer, tensor.shape[1:], tensor.strides[1:], tensor.valid[1:], tensor.dtype, tensor.root)
            go = moved(e, at, (*inner, i64(0)))
            self._columns((*position, *inner), go, columns)

    def _columns(self, row: Position, go: Value, columns: Value) -> None:
        e, step = self.e, self.tensor.strides[-1]

        def one(column: Value) -> None:
            self._element((*row, column), at_column(e, go, column, step, self.tensor.dtype))

        adjacent = FALSE if e.is_concurrent else self._is_adjacent()
        if adjacent != FALSE:
            with e.b.when(adjacent):
                self._vectors(row, go, columns)
        if adjacent != TRUE:
            with e.b.when(e.negated(adjacent)):
                single(e, columns, 4, one)

    def _is_adjacent(self) -> Value:
        """Return whether neighbours lie side by side in all that is read and written."""
        adjacent = TRUE
        for stride in (self.tensor.strides[-1], *(operand.stride for operand in self.operands)):
            if static(stride) not in (None, 1):
                return FALSE
            if static(stride) is None:
                same = self.e.b.compare("icmp eq", stride, i64(1))
                adjacent = same if adjacent == TRUE else self.e.b.op("and", adjacent, same)
        return adjacent

    def _vectors(self, row: Position, go: Value, columns: Value) -> None:
        """Emit the update of a row, several elements at a time as far as they reach."""
        e, width = self.e, self.e.lanes
        known = static(columns)
        whole = i64(known // width * width) if known is not None else e.b.op("and", columns, i64(-width))
        with e.b.loop(i64(0), whole, i64(width)) as column:
            self._change((*row, column), e.b.offset(go, column, memory_type(self.tensor.dtype)), width)
        if known is None or known % width:
            with e.b.loop(whole, columns, i64(1)) as column:
                self._change((*row, column), e.b.offset(go, column, memory_type(self.tensor.dtype)), 1)

    def _element(self, position: Position, pointer: Value) -> None:
        if not self.e.is_concurrent:
            self._change(position, pointer, 1)
            return
        b, given = self.e.b, [operand.lanes(position) for operand in self.operands]
        was = atomics.swap(b, pointer, *given) if self.name == SWAP else atomics.change(b, pointer, self.name, given[0])
        self._keep(position, was)

    def _change(self, position: Position, pointer: Value, count: int) -> None:
        """Emit the update of neighbours that nobody else changes at the same time."""
        b, dtype = self.e.b, self.tensor.dtype
        given = [operand.lanes(position, count) for operand in self.operands]
        was = b.load(vector(memory_type(dtype), count), pointer, dtype.get_byte())
        if self.name == SWAP:
            new = self._chosen(was, *map(to_memory, given))
        elif self.name == EXCHANGE:
            new = to_memory(given[0])
        else:
            new = to_memory(rounded(combine(self.name)(from_memory(b, was, dtype), given[0]), dtype))
        b.store(new, pointer, dtype.get_byte())
        self._keep(position, was)

    def _chosen(self, was: Value, expected: Value, new: Value) -> Value:
        b, count = self.e.b, int(was.type[1:].split(" ")[0]) if was.type.startswith("<") else 1
        bits = vector(f"i{8 * self.tensor.dtype.get_byte()}", count)
        same = b.compare("icmp eq", *(b.convert("bitcast", each, bits) for each in (was, expected)))
        return b.select(same, new, was)

    def _keep(self, position: Position, was: Value) -> None:
        if self.old is not None:
            self.e.b.store(was, moved(self.e, self.old, position), self.old.dtype.get_byte())
