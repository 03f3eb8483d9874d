"""Padded rows: the last tile of rows, where it hangs over their end, as a whole one with zeros there.

Rows that are folded online, as those of attention are, do not look at each other. So the rows that hang over may as
well be computed, of zeros, and are not stored: all tiles then have as many rows as somebody said, and what is done row
by row is done together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments, call, scalar
from tilewright.core.expr import Call, Expr, Var, integer
from tilewright.core.extents import bounds
from tilewright.core.op import OPS
from tilewright.core.program import Function
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import evaluated, statements
from tilewright.passes.fold_steps import online_folds
from tilewright.passes.tile_axes import Class, TileAxes
from tilewright.records import record

ROWS = -2
"""The axis of a tile that is its rows."""


@record
class Hanging:
    """Rows of which a tensor may have fewer than a tile: what they begin at, and how many there are of either."""

    start: Var
    extent: int
    size: int

    @property
    def left(self) -> Expr:
        """How many rows there are."""
        return scalar("min", integer(self.size), scalar("sub", integer(self.extent), self.start))


def padded_rows(function: Function) -> Function:
    """Return a function whose online folds have whole tiles of rows."""
    if not any(_is_open(stmt, "store") for stmt in statements(function.body)):
        return function
    axes = TileAxes(function.body)
    if not axes.is_plain or not online_folds(axes):
        return function
    loads = [stmt for stmt in statements(function.body) if _is_open(stmt, "load")]
    stores = [stmt for stmt in statements(function.body) if _is_open(stmt, "store")]
    rows = {id(found := axes.of(_tile(stmt), ROWS)): found for stmt in stores}
    hanging = _hanging(*rows.values()) if len(rows) == 1 else None
    (of,) = rows.values() if len(rows) == 1 else (None,)
    padded = {_tile(stmt) for stmt in loads if axes.of(_tile(stmt), ROWS) is of}
    if hanging is None or not all(map(_is_whole_but_for_rows, padded)):
        return function
    body = _Padder({tile: hanging for tile in (*padded, *map(_tile, stores))}).body(function.body)
    return function.with_body(Rewriter().body(body))  # what is known of the tiles goes round the loops


def _is_open(stmt: Stmt, name: str) -> bool:
    """Return whether a statement loads or stores a matrix of which nobody knows how many rows there are."""
    made = evaluated(stmt)
    if not isinstance(made, Call) or made.op.name != f"tile.{name}":
        return False
    type_ = _tile(stmt).type
    return isinstance(type_, TileType) and len(type_.shape) == 2 and type_.valid[ROWS] is None


def _tile(stmt: Stmt) -> Var:
    """Return the tile that a statement loads or stores."""
    made = evaluated(stmt)
    assert isinstance(made, Call)
    loaded = stmt.var if isinstance(stmt, AssignStmt) else None
    tile = arguments(made)["tile"] if made.op.spec.name == "store" else loaded
    assert isinstance(tile, Var)
    return tile


def _hanging(rows: Class) -> Hanging | None:
    """Return what an axis of tiles is cut from, None where it is looked at or begins in several places."""
    starts, extents = {cut.offset for cut in rows.cuts}, {cut.extent for cut in rows.cuts}
    if rows.is_fixed or rows.is_folded or rows.is_summed or len(starts) != 1 or len(extents) != 1:
        return None
    (start,), (extent,), times = starts, extents, {cut.times for cut in rows.cuts}
    if not isinstance(start, Var) or not isinstance(extent, int) or times != {1} or len(rows.sizes) != 1:
        return None
    reach, (size,) = bounds(start), rows.sizes
    is_within = reach is not None and 0 <= reach[0] and reach[1] < extent
    is_plain = rows.begins_at(start) and not any(cut.is_padded for cut in rows.cuts)
    return Hanging(start, extent, size) if is_within and is_plain else None


def _is_whole_but_for_rows(tile: Var) -> bool:
    assert isinstance(tile.type, TileType)
    return tile.type.valid[-1] == tile.type.shape[-1]


class _Padder(Rewriter):
    """Loads of whole tiles, and stores of what is there of them."""

    def __init__(self, tiles: Mapping[Var, Hanging]) -> None:
        super().__init__()
        self.tiles = tiles

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Load a whole tile."""
        value = stmt.value
        if _named(value, "store"):
            return self._narrowed(stmt)
        if not isinstance(value, Call) or stmt.var not in self.tiles or not _named(value, "load"):
            return super().assign(stmt)
        given = {name: self.expr(x) if isinstance(x, Expr) else x for name, x in arguments(value).items()}
        made = call(value.op.spec, {**given, "pad": 0}, value.span)
        return (AssignStmt(self.define(stmt.var, made.type), made, stmt.span),)

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Store what is there."""
        return self._narrowed(stmt) if _named(stmt.expr, "store") else super().evaluate(stmt)

    def _narrowed(self, stmt: AssignStmt | EvalStmt) -> Sequence[Stmt]:
        """Return a store of the rows that are there."""
        tile = _tile(stmt)
        rows = self.tiles.get(tile)
        if rows is None or not isinstance(tile.type, TileType):
            return super().assign(stmt) if isinstance(stmt, AssignStmt) else super().evaluate(stmt)
        columns = integer(tile.type.shape[-1])
        bound = {"x": self.expr(tile), "valid_rows": rows.left, "valid_cols": columns}
        some = call(OPS["tile.set_validshape"].spec, bound, stmt.span)
        var = Var(f"{tile.name_hint}_there", some.type)
        self.replaced[tile] = var
        (made,) = super().assign(stmt) if isinstance(stmt, AssignStmt) else super().evaluate(stmt)
        self.replaced.pop(tile)
        return AssignStmt(var, some, stmt.span), made


def _named(value: Expr, name: str) -> bool:
    return isinstance(value, Call) and value.op.name == f"tile.{name}"
