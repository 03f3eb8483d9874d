"""Transposes: tiles that products meet as they lie, are packed for those, or are turned on the way to where they go."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import TileType
from tilewright.passes.fusion import Waiting
from tilewright.passes.fusion_walk import Given, Walk


def transpose(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let a transpose be packed for products of an inner loop where it stands; few rows meet it as it lies.

    A matrix that is loaded to be stored on its side is turned on the way.
    """
    stmt = w.recorder.stmt
    assert stmt is not None and isinstance(call.type, TileType)
    (x,), copies = w.tiles(given), call.op.spec.name == "transpose"
    if copies and _swaps(given) and _goes_on(w, x) and w.withdraw(x):
        found = w.needing(call, given)
        assert found is not None and x.tensor is not None
        w.straighten(found.rows, read=[x.tensor])
        return found
    if isinstance(stmt, AssignStmt) and stmt.var in w.recorder.computed:
        w.recorder.plan.note(stmt, in_place=True)
        return Waiting(call.type.shape, w.tiles(given)[0].valid[::-1])
    readers = w.readers.get(stmt.var, []) if isinstance(stmt, AssignStmt) else []
    here = {id(each) for each in w.here}
    if copies and readers and all(id(each) not in here and _is_product(each) for each in readers):
        w.recorder.plan.note(stmt, packed=True)
    return w.needing(call, given)


def _swaps(given: Given) -> bool:
    """Return whether two axes of a matrix change places: one with itself is a copy."""
    one, other = given["axis1"], given["axis2"]
    return isinstance(one, int) and isinstance(other, int) and (one - other) % 2 == 1


def _goes_on(w: Walk, x: Waiting) -> bool:
    """Return whether a loaded matrix is stored on its side by the next statement, to other memory than its own."""
    if x.tensor is None or x.loaded is None or x.tensor in w.turned or len(x.shape) != 2:
        return False
    return w.store_of(read=[x.tensor]) is not None


def _is_product(stmt: Stmt) -> bool:
    return isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and stmt.value.op.name == "tile.matmul"
