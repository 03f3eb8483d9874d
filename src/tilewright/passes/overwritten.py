"""Overwritten memory: new buffers and outputs whose every element is stored to, so that nobody sees what was there.

A store covers an axis of its tensor where its tile is as long, or where the turns of a loop around it put one piece
behind the other: `for row in pl.range(0, M, 64)`, `for block in pl.range(pl.cdiv(M, 64))` with tiles at `block * 64`,
or rows from `block * 64` to `pl.min(block * 64 + 64, M)` in an inner loop. A tile that reaches past the end is an error
unless it was loaded from as far, so what is stored at a place is all that its tile holds.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from tilewright.core.build import arguments, ceil_div, scalar
from tilewright.core.enums import AtomicType, ParamDirection
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, Var, integer
from tilewright.core.extents import as_extent, as_scalar
from tilewright.core.program import Function, Program
from tilewright.core.rewrite_expressions import ExpressionRewriter
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    Stmt,
)
from tilewright.core.types import Extent, ScalarType, TensorType
from tilewright.core.visitor import evaluated, statements, used, variables
from tilewright.dtypes import INDEX
from tilewright.passes.aliases import Footprints
from tilewright.passes.boxes import Box
from tilewright.passes.covered_buffers import is_covered, named
from tilewright.passes.defined import Defined
from tilewright.passes.exits import returns_early
from tilewright.records import record

_LEAVING = (BreakStmt, ContinueStmt, ReturnStmt)


def is_overwritten(made: Call, body: SeqStmts, program: Program, defined: Defined) -> bool:
    """Return whether the first statement that names a new buffer stores to every element of it, and reads none."""
    for number, stmt in enumerate(body.stmts):
        if isinstance(stmt, AssignStmt) and stmt.value is made:
            if is_covered(body.stmts[number + 1 :], stmt.var):
                return True
            naming = (each for each in body.stmts[number + 1 :] if stmt.var in named(each))
            first = next(naming, None)
            if first is None or _is_read(first, stmt.var, Footprints(program)):
                return False
            stores = _Walk(program).stores(first, _Here(defined, {}, {}, ()))
            return any(store.fills(stmt.var) for store in stores)
    return False


def _is_read(stmt: Stmt, buffer: Var, footprints: Footprints) -> bool:
    """Return whether a statement may look at a buffer: all but stores to it and functions that only write it may."""
    names = {buffer}
    for each in statements(SeqStmts((stmt,))):
        if not names.isdisjoint(variables(used(each))):
            if not _only_writes(each, buffer, footprints):
                return True
            if isinstance(each, AssignStmt):
                names.add(each.var)  # what a function returns may be the buffer
    return False


def _only_writes(stmt: Stmt, buffer: Var, footprints: Footprints) -> bool:
    expr = evaluated(stmt)
    if not isinstance(expr, (Call, Invoke, Submit)) or variables(expr.args).count(buffer) != 1:
        return False
    if isinstance(expr, Call):
        bound = arguments(expr) if expr.op.name == "tile.store" else {}
        return bound.get("output_tensor") is buffer and bound["atomic"] is not AtomicType.Add
    found = footprints[expr.op.name]
    return buffer in expr.args and expr.args.index(buffer) not in found.reads | found.adds


def overwritten_outputs(program: Program, entry: Function) -> tuple[int, ...]:
    """Return the positions of what a function may write that it surely fills, and does not read."""
    found = Footprints(program)[entry.name]
    positions = [k for k, says in enumerate(entry.param_directions) if says is not ParamDirection.In]
    unread = {entry.params[k]: k for k in positions if k not in found.reads | found.adds}
    if not unread:
        return ()
    stores = _Walk(program).function(entry, {}, {}, ())
    return tuple(position for tensor, position in unread.items() if any(store.fills(tensor) for store in stores))


@record
class _Turns:
    """A loop around a store, in terms of the function where the walk began."""

    var: Var
    start: Expr
    stop: Expr
    step: Expr

    @property
    def surely_turns(self) -> bool:
        limits = [limit.value for limit in (self.start, self.stop, self.step) if isinstance(limit, Const)]
        return len(limits) == 3 and (limits[0] < limits[1] if limits[2] > 0 else limits[0] > limits[1])


@record
class _Here:
    """Where a walk is: what is known of tiles, what names stand for where it began, and the loops around it."""

    defined: Defined
    names: Mapping[Var, Expr]
    symbols: Mapping[str, Expr]
    loops: tuple[_Turns, ...]

    def meant(self, expr: Expr) -> Expr:
        return ExpressionRewriter(self.names, self.symbols).expr(expr)


@record
class _Piece:
    """What a store writes along one axis: from where on, and how much; all that there is where it is nothing."""

    start: Expr | None = None
    size: int = 0


@record
class _Store:
    """A store to a tensor that is surely made, in all turns of the loops around it."""

    tensor: Expr
    pieces: Sequence[_Piece]
    loops: tuple[_Turns, ...]

    def fills(self, tensor: Var) -> bool:
        """Return whether it writes every element of a tensor."""
        if self.tensor is not tensor or not isinstance(tensor.type, TensorType):
            return False
        left = {turns.var: turns for turns in self.loops}
        axes = zip(self.pieces, tensor.type.shape, strict=True)
        covered = all(piece.start is None or _covers(piece.start, piece.size, n, left) for piece, n in axes)
        return covered and all(turns.surely_turns for turns in left.values())


def _covers(start: Expr, size: int, extent: Extent, left: dict[Var, _Turns]) -> bool:
    """Return whether pieces from a start on, in all turns of loops, are all of an axis; takes those out of `left`."""
    if extent is None:
        return False
    if isinstance(start, Const):
        return start.value == 0 and isinstance(extent, int) and size >= extent
    if isinstance(start, Var) and start in left:
        turns = left.pop(start)
        if not isinstance(turns.step, Const) or not 0 < turns.step.value <= size:
            return False
        if isinstance(turns.start, Const) and turns.start.value == 0 and as_extent(turns.stop) == extent:
            return True
        length = _length(turns.start, turns.stop, extent)
        return length is not None and _covers(turns.start, length, extent, left)
    blocks = _product(start)
    if blocks is None or blocks[0] not in left or blocks[1] > size:
        return False
    turns, end, by = left.pop(blocks[0]), as_scalar(extent), integer(blocks[1])
    enough = ceil_div(end, by), scalar("floordiv", scalar("add", end, integer(blocks[1] - 1)), by)
    return turns.start == integer(0) and turns.step == integer(1) and turns.stop in enough


def _length(start: Expr, stop: Expr, extent: Extent) -> int | None:
    """Return how far it is from one place to another, which may be cut at the end of an axis; None for who knows."""
    if isinstance(stop, Call) and stop.op.name == "scalar.min" and extent in map(as_extent, stop.args):
        stop = stop.args[1] if as_extent(stop.args[0]) == extent else stop.args[0]
    if isinstance(stop, Call) and stop.op.name == "scalar.add" and start in stop.args:
        other = stop.args[1] if stop.args[0] == start else stop.args[0]
        return int(other.value) if isinstance(other, Const) else None
    return None


def _product(expr: Expr) -> tuple[Var, int] | None:
    """Return a variable and what it is multiplied by."""
    if not isinstance(expr, Call) or expr.op.name != "scalar.mul":
        return None
    for var, by in (expr.args, expr.args[::-1]):
        if isinstance(var, Var) and isinstance(by, Const):
            return var, int(by.value)
    return None


class _Walk:
    """A walk over statements that are surely executed, into the functions that they call."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def function(
        self, function: Function, names: Mapping[Var, Expr], symbols: Mapping[str, Expr], loops: tuple[_Turns, ...]
    ) -> list[_Store]:
        """Return the stores of a function that is left at its end alone."""
        if returns_early(function.body):
            return []
        return self.body(function.body.stmts, _Here(Defined(function), names, symbols, loops))

    def body(self, body: Sequence[Stmt], here: _Here) -> list[_Store]:
        found: list[_Store] = []
        for stmt in body:
            if isinstance(stmt, AssignStmt) and isinstance(stmt.value.type, ScalarType):
                here = replace(here, names={**here.names, stmt.var: here.meant(stmt.value)})
            found += self.stores(stmt, here)
        return found

    def stores(self, stmt: Stmt, here: _Here) -> list[_Store]:
        """Return the stores of a statement."""
        match stmt:
            case ForStmt() if not any(isinstance(inner, _LEAVING) for inner in statements(stmt.body)):
                limits = (here.meant(limit) for limit in (stmt.start, stmt.stop, stmt.step))
                inside = replace(here, loops=(*here.loops, _Turns(stmt.loop_var, *limits)))
                return self.body(stmt.body.stmts, inside)
            case RuntimeScopeStmt():
                return self.body(stmt.body.stmts, here)
            case EvalStmt(expr=Call() as call) if call.op.name == "tile.store":
                return _stored(call, here)
            case EvalStmt(expr=Invoke() as call) | AssignStmt(value=Invoke() as call):
                return self._called(call, here)
            case EvalStmt(expr=Submit() as call) | AssignStmt(value=Submit() as call):
                is_one = call.predicate is None and call.core_num is None
                return self._called(call, here) if is_one else []
            case _:
                return []

    def _called(self, call: Invoke | Submit, here: _Here) -> list[_Store]:
        function = self.program.get_function(call.op.name)
        if function is None or function.solutions:
            return []
        names = dict(zip(function.params, map(here.meant, call.args), strict=True))
        symbols = {name: _extent(call.args[k], axis, here) for name, (k, axis) in function.symbols.items()}
        return self.function(function, names, symbols, here.loops)


def _extent(tensor: Expr, axis: int, here: _Here) -> Expr:
    """Return an extent of a tensor, as a variable that is no other's where only the running program knows."""
    extent = tensor.type.shape[axis] if isinstance(tensor.type, TensorType) else None
    return Var("extent", ScalarType(INDEX)) if extent is None else here.meant(as_scalar(extent))


def _stored(call: Call, here: _Here) -> list[_Store]:
    """Return a store by the pieces that it writes, none where it may write less than its tile."""
    bound = arguments(call)
    facts, offsets, tensor = here.defined.of(bound["tile"]), bound["offsets"], bound["output_tensor"]
    is_plain = all(isinstance(bound[name], (Absent, type(None))) for name in ("mask", "shapes"))
    if facts is None or not is_plain or bound["atomic"] is AtomicType.Add or not isinstance(offsets, MakeTuple):
        return []
    if not isinstance(tensor, Expr) or not isinstance(tensor.type, TensorType):
        return []
    valid = (1,) * (len(offsets.elements) - len(facts.valid)) + facts.valid
    axes = zip(offsets.elements, valid, tensor.type.shape, strict=True)
    pieces = [_piece(*axis, here) for axis in axes]
    known = [piece for piece in pieces if piece is not None]
    return [_Store(here.meant(tensor), known, here.loops)] if len(known) == len(pieces) else []


def _piece(offset: Expr, valid: Hashable, extent: Extent, here: _Here) -> _Piece | None:
    """Return what a store writes along an axis, None where that is not known."""
    if isinstance(offset, Const) and offset.value == 0 and extent is not None and valid == extent:
        return _Piece()
    if isinstance(valid, int):
        return _Piece(here.meant(offset), valid)
    cut = cast("Box", valid) if isinstance(valid, tuple) else (None,)
    name, *loaded = cut
    size = loaded[1] if name == "load" and (loaded[0], loaded[2]) == (offset, extent) else None
    return _Piece(here.meant(offset), size) if isinstance(size, int) else None
