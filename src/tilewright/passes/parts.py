"""Parts of what is loaded: slices of it, every other column, its end first, its bytes as others, each by itself."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr, MakeTuple
from tilewright.core.stmt import AssignStmt, EvalStmt, Stmt
from tilewright.core.types import TileType
from tilewright.passes.fusion import Waiting
from tilewright.passes.fusion_walk import Given, Walk, is_there, known, number


def part(w: Walk, call: Call, given: Given) -> Waiting | None:
    """Let a part of a tile that is only loaded be loaded in its place, unless somebody changes it in its tile."""
    source, stmt = w.tiles(given)[0], w.recorder.stmt
    assert isinstance(call.type, TileType) and stmt is not None
    valid = [source.valid[n] if _keeps(given, source, n) else (id(stmt), n) for n in range(len(call.type.shape))]
    loaded, waits = w.in_memory(call, valid), source.loaded is not None and w.recorder.waits(source)
    if _stays_in_lanes(w, call, given, source):
        w.recorder.plan.note(stmt, joins=True)
        return w.map(call.type.shape, known(call.type, valid), [source])
    if not waits or source.tensor in w.turned or _moves_rows(given, source) or not _is_alone(w, source, loaded):
        return w.needing(call, given)
    assert loaded is not None
    w.recorder.plan.note(stmt, reloads=True)
    loaded.loaded, loaded.tensor = stmt, source.tensor
    w.recorder.load(loaded, may_float=not w.is_copied(stmt))
    if call.op.spec.name not in ("slice", "extract"):
        loaded.loaded, loaded.turned = None, False  # its neighbours lie apart: whoever else wants it gets a copy
    return loaded


def _keeps(given: Given, source: Waiting, axis: int) -> bool:
    """Return whether a part is surely valid as far as its source along an axis, and has that axis."""
    if "steps" in given:
        steps = given["steps"]
        return isinstance(steps, (tuple, list)) and steps[axis] == 1
    if "axis" in given:
        return True
    if "dtype" in given or "mask_pattern" in given:
        return axis < len(source.shape) - 1
    starts, shape = _starts(given), given["shape"]
    if not isinstance(shape, MakeTuple) or is_there(given.get("drop_dims")) or is_there(given.get("valid_shape")):
        return False
    return number(starts[axis]) == 0 and number(shape.elements[axis]) == source.shape[axis]


def _starts(given: Given) -> Sequence[Expr]:
    """Return where a slice or what is extracted begins along each axis."""
    offset = given.get("offset")
    if isinstance(offset, MakeTuple):
        return offset.elements
    return [start for start in (given["index_row"], given["index_col"]) if isinstance(start, Expr)]


def _moves_rows(given: Given, source: Waiting) -> bool:
    """Return whether bytes seen as other elements do not stay in their rows."""
    return "dtype" in given and (source.is_column or is_there(given["shape"]))


def _stays_in_lanes(w: Walk, call: Call, given: Given, source: Waiting) -> bool:
    """Return whether bytes of what is computed for nobody else are seen as others before they are in memory."""
    data, uses = given.get("data"), sum(w.uses.get(var, 0) for var in set(source.owners))
    if not isinstance(data, Expr) or not isinstance(data.type, TileType) or not isinstance(call.type, TileType):
        return False
    have, want = data.type.dtype.get_byte(), call.type.dtype.get_byte()
    is_computed = w.recorder.waits(source) and source.loaded is None and not source.turned and uses == 1
    return is_computed and not _moves_rows(given, source) and want <= 2 * have and call.type.shape[-1] > 1


def _is_alone(w: Walk, source: Waiting, loaded: Waiting | None) -> bool:
    """Return whether a part may have memory of its own: nobody else reads its tile, or nobody adds to it there."""
    if w.withdraw(source):
        return True
    stmt, here = w.recorder.stmt, {id(each) for each in w.here}
    readers = w.readers.get(stmt.var, ()) if isinstance(stmt, AssignStmt) else ()
    is_kept = all(id(each) in here and not _changes(each, stmt) for each in readers)
    return is_kept and loaded is not None and loaded.rows == source.rows


def _changes(reader: Stmt, made: Stmt | None) -> bool:
    """Return whether a statement changes a tile that another makes, or may hand it to one that does."""
    call = reader.value if isinstance(reader, AssignStmt) else reader.expr if isinstance(reader, EvalStmt) else None
    if not isinstance(call, Call) or not isinstance(made, AssignStmt):
        return True
    return any(arguments(call).get(name) is made.var for name in ("acc", call.op.spec.writes or ""))
