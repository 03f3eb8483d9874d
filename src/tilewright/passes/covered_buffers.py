"""Covered buffers: flat memory whose views are stored to, every byte before any is read: it need not begin as zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Var
from tilewright.core.extents import as_extent
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType, TileType, is_fully_valid
from tilewright.core.visitor import statements, used, variables
from tilewright.passes.strided_steps import Moves, numbers_of


def is_covered(stmts: Sequence[Stmt], buffer: Var, nbytes: int | None = None) -> bool:
    """Return whether the first statement that names a buffer, but to see it, writes all of it, or so many bytes."""
    views: dict[Var, Call] = {}
    nbytes = _size(buffer) if nbytes is None else nbytes
    if nbytes is None:
        return False
    for stmt in stmts:
        if _sees(stmt, buffer, views) or not named(stmt) & {buffer, *views}:
            continue
        if isinstance(stmt, ForStmt):
            return _fills_in_turn(stmt, buffer, nbytes)
        return dense_bytes(stmt, views) == nbytes and place(_view(stmt, views), {}) == 0
    return False


def _size(buffer: Var) -> int | None:
    type_ = buffer.type
    if not isinstance(type_, TensorType) or len(type_.shape) != 1 or not isinstance(type_.shape[0], int):
        return None
    return type_.shape[0] * type_.dtype.get_byte()


def _sees(stmt: Stmt, buffer: Var, views: dict[Var, Call]) -> bool:
    """Return whether a statement only makes a view of a buffer, and note that."""
    value = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(stmt, AssignStmt) or not isinstance(value, Call) or value.op.name != "tensor.as_strided":
        return False
    if arguments(value)["buffer"] is not buffer:
        return False
    views[stmt.var] = value
    return True


def named(stmt: Stmt) -> set[Var]:
    """Return the variables that a statement mentions, those inside it included."""
    return {var for each in statements(SeqStmts((stmt,))) for var in variables(used(each))}


def _view(stmt: Stmt, views: Mapping[Var, Call]) -> Call | None:
    """Return the view that a statement stores to, where that is all it does."""
    call = stmt.expr if isinstance(stmt, EvalStmt) and isinstance(stmt.expr, Call) else None
    if call is None or call.op.name != "tile.store":
        return None
    target = arguments(call)["output_tensor"]
    return views.get(target) if isinstance(target, Var) else None


def dense_bytes(stmt: Stmt, views: Mapping[Var, Call]) -> int | None:
    """Return how many bytes a store writes one behind the other, None where it is no such store."""
    view = _view(stmt, views)
    if view is None or not isinstance(stmt, EvalStmt) or not isinstance(stmt.expr, Call):
        return None
    given = arguments(stmt.expr)
    tile = given["tile"]
    shape, strides = (numbers_of(arguments(view)[name]) for name in ("shape", "strides"))
    plain = all(isinstance(given.get(name) or Absent(), Absent) for name in ("mask", "shapes"))
    if shape is None or strides is None or not plain or any(numbers_of(given["offsets"]) or (1,)):
        return None
    if not isinstance(tile, Var) or not isinstance(tile.type, TileType) or not is_fully_valid(tile.type):
        return None
    dense = all(
        n == 1 or stride == prod(shape[i + 1 :]) for i, (n, stride) in enumerate(zip(shape, strides, strict=True))
    )
    assert isinstance(view.type, TensorType)
    return prod(shape) * view.type.dtype.get_byte() if dense and tile.type.shape == shape else None


def place(view: Call | None, made: Mapping[Var, Expr]) -> int | None:
    """Return where a view begins, given what some variables are."""
    if view is None:
        return None
    offset = arguments(view)["offset"]
    return _value(offset, made) if isinstance(offset, Expr) else None


def _value(number: Expr, made: Mapping[Var, Expr]) -> int | None:
    if isinstance(number, Const):
        return int(number.value)
    if isinstance(number, Var):
        return _value(made[number], made) if number in made else None
    parts = [_value(each, made) for each in number.args] if isinstance(number, Call) else []
    if not isinstance(number, Call) or len(parts) != 2 or parts[0] is None or parts[1] is None:
        return None
    compute = {"scalar.add": int.__add__, "scalar.sub": int.__sub__, "scalar.mul": int.__mul__}.get(number.op.name)
    return None if compute is None else compute(parts[0], parts[1])


def _fills_in_turn(loop: ForStmt, buffer: Var, nbytes: int) -> bool:
    """Return whether the turns of a loop write a buffer piece by piece, from its start to its end."""
    start, stop, step = (as_extent(end) for end in (loop.start, loop.stop, loop.step))
    if start != 0 or not isinstance(stop, int) or not isinstance(step, int) or step < 1 or loop.iter_args:
        return False
    views: dict[Var, Call] = {}
    naming = [s for s in loop.body if not _sees(s, buffer, views) and named(s) & {buffer, *views}]
    written = dense_bytes(naming[0], views) if len(naming) == 1 else None
    if written is None:
        return False
    calls = {s.var: s.value for s in loop.body if isinstance(s, AssignStmt) and isinstance(s.value, Call)}
    view = _view(naming[0], views)
    assert view is not None
    offset = arguments(view)["offset"]
    assert isinstance(offset, Expr)
    by, first = Moves(loop.loop_var, calls).of(offset), _value(offset, {**calls, loop.loop_var: loop.start})
    return first == 0 and by is not None and by * step == written and len(range(0, stop, step)) * written == nbytes
