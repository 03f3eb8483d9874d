"""Row turns: loops that work on each row by itself, turn after turn, and may make all turns for one row first.

A sum of chunks of columns reads a few columns of many rows, then the next few of all of them. Row by row it reads each
row from its beginning to its end, as memory has it, and what it carries of a row stays close by.
"""

from __future__ import annotations

from collections import Counter

from tilewright.core.expr import Call, Expr, Var
from tilewright.core.op import Kind
from tilewright.core.stmt import AssignStmt, ForKind, ForStmt, Stmt, YieldStmt
from tilewright.core.types import TileType, is_fully_valid
from tilewright.core.visitor import used, variables
from tilewright.passes.left_tiles import is_elementwise, is_load


def rows_of_turns(loop: ForStmt) -> int | None:
    """Return how many rows a loop works on, each by itself; None where rows meet, or it does something else.

    It carries one tile, which is read once in a turn, by what takes its place.
    """
    if loop.kind is not ForKind.Sequential or len(loop.iter_args) != 1 or len(loop.body) < 2:
        return None
    (arg,), (*made, last) = loop.iter_args, loop.body.stmts
    rows = _rows(arg.var)
    if rows is None or rows < 2 or {_rows(arg.init), _rows(loop.return_vars[0])} != {rows}:
        return None
    total = last.values[0] if isinstance(last, YieldStmt) and len(last.values) == 1 else None
    reads = Counter(var for stmt in loop.body for var in variables(used(stmt)))
    if not isinstance(total, Var) or reads[arg.var] != 1 or reads[total] != 1:
        return None
    takes_place = any(isinstance(s, AssignStmt) and s.var is total and _updates(s.value, arg.var) for s in made)
    is_apart = all(_works_by_row(stmt, rows) for stmt in made)
    return rows if takes_place and is_apart and any(map(_loads_columns, made)) else None


def _rows(value: Expr) -> int | None:
    """Return how many rows a matrix has that is surely there as a whole."""
    type_ = value.type
    is_whole = isinstance(type_, TileType) and len(type_.shape) == 2 and is_fully_valid(type_)
    return type_.shape[0] if isinstance(type_, TileType) and is_whole else None


def _updates(value: Expr, carried: Var) -> bool:
    """Return whether each element of a value is made of the same one of what is carried."""
    if not isinstance(value.type, TileType) or not isinstance(carried.type, TileType):
        return False
    is_like = (value.type.shape, value.type.dtype) == (carried.type.shape, carried.type.dtype)
    return isinstance(value, Call) and is_elementwise(value) and carried in value.args and is_like


def _works_by_row(stmt: Stmt, rows: int) -> bool:
    """Return whether a statement computes a number, or each row of a tile from the same row of others."""
    made = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(made, Call):
        return False
    if made.op.kind is Kind.SCALAR:
        return True
    is_fold = made.op.kind is Kind.TILE and made.op.spec.family == "reduction" and made.op.spec.name.startswith("row")
    return (is_load(made) or is_elementwise(made) or is_fold) and _rows(made) == rows


def _loads_columns(stmt: Stmt) -> bool:
    made = stmt.value if isinstance(stmt, AssignStmt) else None
    return isinstance(made, Call) and is_load(made) and isinstance(made.type, TileType) and made.type.shape[-1] > 1
