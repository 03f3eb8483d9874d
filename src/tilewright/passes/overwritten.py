"""Overwritten: new buffers that the next statement fills, so that nobody sees what memory held before."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Absent, Call, Const, Expr, MakeTuple, Var
from tilewright.core.extents import as_extent
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import Extent, TensorType
from tilewright.passes.defined import Defined


def is_overwritten(made: Call, body: SeqStmts, defined: Defined) -> bool:
    """Return whether the statement after the one that binds a new buffer stores to every element of it.

    That is a store of a whole tile, or loops over blocks of what a tensor of the same extents holds.
    """
    for stmt, following in zip(body.stmts, body.stmts[1:], strict=False):
        if isinstance(stmt, AssignStmt) and stmt.value is made:
            return _covers(following, stmt.var, {}, defined)
    return False


def _covers(stmt: Stmt, tensor: Var, loops: Mapping[Expr, ForStmt], defined: Defined) -> bool:
    if isinstance(stmt, ForStmt) and stmt.body.stmts and not stmt.iter_args:
        return _covers(stmt.body.stmts[-1], tensor, {**loops, stmt.loop_var: stmt}, defined)
    store = stmt.expr if isinstance(stmt, EvalStmt) else None
    if not isinstance(store, Call) or store.op.name != "tile.store" or not isinstance(tensor.type, TensorType):
        return False
    bound = arguments(store)
    facts, offsets = defined.of(bound["tile"]), bound["offsets"]
    if bound["output_tensor"] is not tensor or bound["atomic"] is AtomicType.Add or not isinstance(offsets, MakeTuple):
        return False
    if not isinstance(bound["mask"], Absent):
        return False
    axes = zip(offsets.elements, tensor.type.shape, facts.valid if facts is not None else (), strict=True)
    return facts is not None and all(_spans(*axis, loops) for axis in axes)


def _spans(offset: Expr, extent: Extent, valid: object, loops: Mapping[Expr, ForStmt]) -> bool:
    """Return whether a tile is valid from an offset on as far as a tensor reaches, or its loop's next turn begins."""
    if isinstance(offset, Const):
        return offset.value == 0 and extent is not None and valid == extent
    loop = loops.get(offset)
    if loop is None or not isinstance(loop.start, Const) or loop.start.value != 0 or not isinstance(loop.step, Const):
        return False
    return extent is not None and as_extent(loop.stop) == extent and valid == ("load", offset, loop.step.value, extent)
