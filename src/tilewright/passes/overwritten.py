"""Overwritten: tensors that a program fills before it reads them, so that nobody sees what memory held before.

A tensor is filled by a store of a whole tile, or by loops over blocks that together are all of it, whether they store
or call a function that does.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, Var
from tilewright.core.extents import as_extent
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, BreakStmt, ContinueStmt, EvalStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import Extent, TensorType
from tilewright.core.visitor import statements, used, variables
from tilewright.passes.defined import Defined
from tilewright.records import record


def is_overwritten(made: Call, body: SeqStmts, program: Program, defined: Defined) -> bool:
    """Return whether the first statement that names a new buffer, after the one that binds it, fills it."""
    for number, stmt in enumerate(body.stmts):
        if isinstance(stmt, AssignStmt) and stmt.value is made:
            return _fills(SeqStmts(body.stmts[number + 1 :]), stmt.var, {}, _Scope(program, defined))
    return False


def filled(program: Program, function: Function) -> list[int]:
    """Return the parameters of a function, by position, that it fills before it reads them."""
    scope = _Scope(program, Defined(function))
    tensors = [(n, param) for n, param in enumerate(function.params) if isinstance(param.type, TensorType)]
    return [number for number, param in tensors if _fills(function.body, param, {}, scope)]


@record
class _Scope:
    """A function being looked at: its program, and what is known of its tiles."""

    program: Program
    defined: Defined


_Loops = Mapping[Expr, ForStmt]
"""The loops around a statement by their variables, as the function that it is in calls those."""


def _fills(body: SeqStmts, tensor: Var, loops: _Loops, scope: _Scope) -> bool:
    """Return whether the first statement of a body that names a tensor fills it; no other of a loop may name it."""
    naming = [stmt for stmt in body if _names(stmt, tensor)]
    if not naming or (loops and len(naming) > 1):
        return False
    return _covers(naming[0], tensor, loops, scope)


def _names(stmt: Stmt, tensor: Var) -> bool:
    return any(tensor in variables(used(each)) for each in statements(SeqStmts((stmt,))))


def _covers(stmt: Stmt, tensor: Var, loops: _Loops, scope: _Scope) -> bool:
    if isinstance(stmt, ForStmt):
        is_left = any(isinstance(each, (BreakStmt, ContinueStmt)) for each in statements(stmt.body))
        if stmt.iter_args or is_left:
            return False
        return _fills(stmt.body, tensor, {**loops, stmt.loop_var: stmt}, scope)
    expr = stmt.expr if isinstance(stmt, EvalStmt) else stmt.value if isinstance(stmt, AssignStmt) else None
    if isinstance(expr, Invoke) or (isinstance(expr, Submit) and expr.core_num is None and expr.predicate is None):
        return _call_covers(expr, tensor, loops, scope)
    if not isinstance(expr, Call) or expr.op.name != "tile.store":
        return False
    return _store_covers(expr, tensor, loops, scope.defined)


def _call_covers(call: Invoke | Submit, tensor: Var, loops: _Loops, scope: _Scope) -> bool:
    function = scope.program[call.op.name]
    pairs = list(zip(function.params, call.args, strict=True))
    given = [param for param, arg in pairs if arg is tensor]
    if len(given) != 1 or variables(call.args).count(tensor) != 1:
        return False
    inner: _Loops = {param: loops[arg] for param, arg in pairs if arg in loops}
    called = _Scope(scope.program, Defined(function))
    return len(inner) == len(loops) and _fills(function.body, given[0], inner, called)


def _store_covers(store: Call, tensor: Var, loops: _Loops, defined: Defined) -> bool:
    bound = arguments(store)
    facts, offsets = defined.of(bound["tile"]), bound["offsets"]
    if bound["output_tensor"] is not tensor or bound["atomic"] is AtomicType.Add or not isinstance(offsets, MakeTuple):
        return False
    if not isinstance(bound["mask"], Absent) or facts is None or not isinstance(tensor.type, TensorType):
        return False
    if not set(loops) <= set(offsets.elements):  # a loop that moves nothing may have no turns
        return False
    axes = zip(offsets.elements, tensor.type.shape, facts.valid, strict=True)
    return all(_spans(*axis, loops) for axis in axes)


def _spans(offset: Expr, extent: Extent, valid: object, loops: _Loops) -> bool:
    """Return whether a tile is valid from an offset on as far as a tensor reaches, or its loop's next turn begins."""
    if isinstance(offset, Const):
        return offset.value == 0 and extent is not None and valid == extent
    loop = loops.get(offset)
    if loop is None or not isinstance(loop.start, Const) or loop.start.value != 0 or not isinstance(loop.step, Const):
        return False
    step = loop.step.value
    reaches = valid == ("load", offset, step, extent) or (isinstance(valid, int) and valid >= step)
    return extent is not None and as_extent(loop.stop) == extent and reaches
