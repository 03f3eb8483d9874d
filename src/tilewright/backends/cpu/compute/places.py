"""Places: the elements and rows of a tensor that indices name, gone through one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.cpu.compute.addresses import (
    counted,
    is_packed,
    is_read_in_place,
    moved,
    product,
    read_of,
    times,
    view_of,
)
from tilewright.backends.cpu.compute.copies import rows_of
from tilewright.backends.cpu.compute.element_gathers import adjacent
from tilewright.backends.cpu.compute.indexed import check, number, pointing_outside, single
from tilewright.backends.cpu.compute.row_copies import fetch_ahead
from tilewright.backends.cpu.compute.scatters import covering
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import Tensor, Tile, static
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr
from tilewright.native.llvm import FALSE, I8, TRUE, Value, i64
from tilewright.ops.families import shaped
from tilewright.ops.indices import outside
from tilewright.ops.places import takes_rows

Position = tuple[Value, ...]
Visit = Callable[[Position, Value], None]
"""Emits what is done at a place: where among the indices it stands, and where in memory it begins."""

AHEAD = 2
"""How many rows further on the one lies that is fetched while another is gone through."""
TOGETHER = 4
"""How many places are gone through in a turn of the loop over them."""


class Places:
    """The places that a tile of indices names, as far as some extents reach."""

    def __init__(self, e: FunctionEmitter, call: Call, bound: Bound, needed: Sequence[Value] | None) -> None:
        self.e, self.call, self.tensor = e, call, bound["x"]
        x = arguments(call)["x"]
        assert isinstance(x, Expr)
        self.by_row = takes_rows(shaped(x), bound["axis"])
        self.axes = 1 if bound["axis"] == 0 else len(self.tensor.shape)
        self.index, self.mask = (
            self._view(bound["indices"]),
            None if bound["mask"] is None else self._view(bound["mask"]),
        )
        own = self.index.valid
        self.extents = own if needed is None else tuple(needed[: len(own)])
        for name in ("indices", *["mask"] * (self.mask is not None)):
            self._cover(name, bound[name])
        self.limit = product(e, self.tensor.shape[: self.axes])

    def _view(self, tile: Tile) -> Tensor:
        """Return a tile to be read: one that names rows is a line, whichever way it lies."""
        in_place = is_read_in_place(self.e, tile)
        view = read_of(self.e, tile) if in_place else view_of(self.e, adjacent(self.e, tile))
        return _line(self.e, view) if self.by_row else view

    def _cover(self, name: str, tile: Tile) -> None:
        if not self.by_row:
            covering(self.e, self.call, name, tile, self.extents)
            return
        self.e.look(self.call, name, tile, tile.valid)
        view = self._view(tile)
        short = self.e.b.compare("icmp slt", view.valid[0], self.extents[0])
        if view.valid != self.extents and self.e.checked:
            self.e.stop(short, f"an element has no valid index in `{name}`", self.call)

    def check(self) -> None:
        """Emit the end of the function where an index that counts points at nothing."""
        if self.mask is None:
            check(self.e, self.call, self.index, self.extents, self.limit, "indices")
        elif self.e.checked:
            with rows_of(self.e, self.extents) as position:
                self.where(position, lambda: self._check(self.number(position)))

    def _check(self, found: Value) -> None:
        self.e.stop(
            self.e.b.compare("icmp uge", found, self.limit),
            outside("indices"),
            self.call,
            pointing_outside("indices", found, self.limit),
        )

    def number(self, position: Position) -> Value:
        """Return one index."""
        return number(self.e, moved(self.e, self.index, position), self.index.dtype)

    def where(self, position: Position, emit: Callable[[], None]) -> None:
        """Emit something under the condition that the mask, if there is one, lets a place through."""
        if self.mask is None:
            emit()
            return
        held = self.e.b.load(I8, moved(self.e, self.mask, position), 1)
        with self.e.b.when(self.e.b.compare("icmp ne", held, Value(I8, "0"))):
            emit()

    def each(self, visit: Visit, ahead: int = 0) -> None:
        """Emit something at each place, in order along rows; so many bytes of places further on are fetched ahead."""
        e = self.e
        direct = TRUE if self.axes == 1 else is_packed(e, self.tensor)
        for is_direct, condition in ((True, direct), (False, e.negated(direct) if direct != TRUE else FALSE)):
            if condition != FALSE:
                with e.b.when(condition):
                    self._each(visit, is_direct, ahead)

    def _each(self, visit: Visit, is_direct: bool, ahead: int) -> None:
        with rows_of(self.e, self.extents[:-1]) as rows:

            def one(column: Value) -> None:
                position = (*rows, column)
                if ahead:
                    fetch_ahead(self.e, self.later(column, rows), ahead)
                self.where(position, lambda: visit(position, self.address(self.number(position), is_direct)))

            single(self.e, self.extents[-1], 1 if self.by_row else TOGETHER, one)

    def row(self, number: Value) -> Value:
        """Return where the row begins that an index names, by its number among the indices."""
        return self.address(self.number((number,)))

    def later(self, number: Value, rows: Position = (), by: int = AHEAD) -> Value:
        """Return where the place of an index a little further on begins, or of the last one."""
        b, last = self.e.b, self.e.b.op("sub", self.extents[-1], i64(1))
        return self.address(self.number((*rows, b.intrinsic("llvm.smin", b.op("add", number, i64(by)), last))))

    def address(self, found: Value, is_direct: bool = True) -> Value:
        """Return where the place of an index begins: a row, or an element that may be counted directly."""
        e, tensor = self.e, self.tensor
        along = tensor.strides[0] if self.axes == 1 else i64(1)
        offset = times(e, found, along) if is_direct else counted(e, found, tensor, self.axes)
        return e.b.offset(tensor.pointer, offset, memory_type(tensor.dtype))


def _line(e: FunctionEmitter, view: Tensor) -> Tensor:
    axis = next((axis for axis, extent in enumerate(view.shape) if static(extent) != 1), len(view.shape) - 1)
    count = product(e, view.valid)
    return Tensor(view.pointer, (view.shape[axis],), (view.strides[axis],), (count,), view.dtype, view.root)
