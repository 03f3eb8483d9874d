"""Row loops: loops of kernels that load or store so many rows of a tensor in each turn, one behind the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.core.build import arguments, scalar
from tilewright.core.enums import ForKind, FunctionType
from tilewright.core.expr import Call, ConstInt, Expr, MakeTuple, Var, integer
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, BreakStmt, ContinueStmt, ForStmt, InCoreScopeStmt, ReturnStmt, SeqStmts
from tilewright.core.types import TileType, is_static, static_shape
from tilewright.core.visitor import expressions, statements
from tilewright.passes.aliases import Aliases
from tilewright.passes.linear import distance

LOAD, STORE = "tile.load", "tile.store"


def row_loops(function: Function) -> Iterator[ForStmt]:
    """Yield the loops of kernels that run once, and to their end."""
    exits = [s for s in statements(function.body) if isinstance(s, ReturnStmt)]
    if any(s is not function.body.stmts[-1] for s in exits):
        return
    scopes = [s.body for s in function.body.stmts if isinstance(s, InCoreScopeStmt) and not s.attrs and not s.deps]
    for body in [function.body] if function.func_type is FunctionType.InCore else scopes:
        yield from (s for s in body.stmts if isinstance(s, ForStmt) and _is_counted(s))


def _is_counted(loop: ForStmt) -> bool:
    """Return whether a loop takes steps from 0 on, as many as its text says."""
    leaves = any(isinstance(s, (BreakStmt, ContinueStmt)) for s in statements(loop.body))
    numbers = [each.value for each in (loop.start, loop.step) if isinstance(each, ConstInt)]
    is_static = isinstance(loop.stop, ConstInt) and int(loop.stop.value) > 0
    return numbers == [0, 1] and is_static and loop.kind is ForKind.Sequential and not leaves


def calls(body: SeqStmts) -> Iterator[Call]:
    """Yield the ops of a body."""
    yield from (e for s in statements(body) for e in expressions(s) if isinstance(e, Call))


def is_write_of(call: Call, param: Var, aliases: Aliases) -> bool:
    """Return whether an op writes to the memory of a parameter."""
    written = arguments(call)[call.op.spec.writes] if call.op.spec.writes is not None else None
    return isinstance(written, Expr) and param in aliases.owners(written)


def names(function: Function, param: Var) -> Iterator[Var]:
    """Yield the variables that are a parameter as it is, written perhaps: no view of it."""
    known = {param}
    for stmt in statements(function.body):
        found: list[Var] = []
        if isinstance(stmt, ForStmt):
            found = [arg.var for arg in stmt.iter_args if arg.init in known]
        elif isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and stmt.value.op.name == STORE:
            found = [stmt.var] if arguments(stmt.value)["output_tensor"] in known else []
        known.update(found)
        yield from found


def stored_rows(call: Call, loop: ForStmt, made: Mapping[Var, Call], same: set[Var]) -> int | None:
    """Return how many rows a store makes where those of each turn follow those of the last."""
    given = arguments(call)
    tile, offsets, into = (given.get(name) for name in ("tile", "offsets", "output_tensor"))
    if call.op.name != STORE or into not in same or not isinstance(offsets, MakeTuple) or not isinstance(tile, Expr):
        return None
    assert isinstance(tile.type, TileType)
    if not is_static(tile.type.shape) or len(tile.type.shape) != len(offsets.elements):
        return None
    return _rows_of_turns(static_shape(tile.type.shape)[0], offsets, loop, made)


def loaded_rows(call: Call, loop: ForStmt, made: Mapping[Var, Call], tensor: Var) -> int | None:
    """Return how many rows a load takes where those of each turn follow those of the last."""
    given = arguments(call)
    offsets, from_ = given.get("offsets"), given.get("tensor")
    if call.op.name != LOAD or from_ is not tensor or not isinstance(offsets, MakeTuple):
        return None
    assert isinstance(call.type, TileType)
    if not is_static(call.type.shape) or len(call.type.shape) != len(offsets.elements):
        return None
    return _rows_of_turns(static_shape(call.type.shape)[0], offsets, loop, made)


def _rows_of_turns(rows: int, offsets: MakeTuple, loop: ForStmt, made: Mapping[Var, Call]) -> int | None:
    first = scalar("mul", loop.loop_var, integer(rows))
    return rows if distance(made, first, offsets.elements[0]) == 0 else None
