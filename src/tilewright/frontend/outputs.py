"""Outputs: which of its tensors a program gives back, and how far it writes into one whose shape was guessed.

An output that a caller leaves out, and whose annotation gives no shape, is taken to be like the inputs. The stores tell
when that cannot be: none of them reaches the end of an axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.core.build import arguments
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import ABSENT, Absent, Call, Expr, Invoke, MakeTuple, Submit, Var
from tilewright.core.extents import bounds
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, EvalStmt, ReturnStmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import expressions, statements

Reach = list[int | None] | None
"""How far along each axis something is written, None where that is unknown; None as a whole for nothing at all."""


def unreached_axis(program: Program, function: Function, position: int) -> int | None:
    """Return an axis of a parameter whose end no store reaches for certain, or None."""
    type_ = function.params[position].type
    assert isinstance(type_, TensorType)
    reach = _reach(program, function, position)
    if 0 in type_.shape:
        return None
    for axis, extent in enumerate(type_.shape):
        far = reach[axis] if reach is not None else 0
        if isinstance(extent, int) and far is not None and far < extent:
            return axis
    return None


def returned_parameters(function: Function) -> tuple[int, ...] | None:
    """Return which of its parameters a function gives back, whatever it is called on; None where it may be others."""
    returns = [stmt for stmt in statements(function.body) if isinstance(stmt, ReturnStmt)]
    values = returns[0].values if returns else ()
    if len(returns) > 1:
        return None
    if not values:
        return tuple(k for k, way in enumerate(function.param_directions) if way is ParamDirection.Out)
    assigned = [stmt for stmt in statements(function.body) if isinstance(stmt, AssignStmt)]
    rebound = [stmt for stmt in assigned if _source(stmt) is not stmt.var]  # `out = pl.store(..., out)` stays `out`
    times = Counter(stmt.var for stmt in rebound)
    known: dict[Any, int] = {param: k for k, param in enumerate(function.params) if not times[param]}
    for stmt in rebound:
        source = _source(stmt)
        is_settled = times[stmt.var] == 1 and stmt.var not in function.params
        if is_settled and source in known and stmt.var.type == function.params[known[source]].type:
            known[stmt.var] = known[source]
    found = tuple(known[value] for value in values if value in known)
    return found if len(found) == len(values) else None


def _source(stmt: AssignStmt) -> Any:
    """Return what a variable stands for after an assignment, None where that is something new."""
    return _written(stmt.value) if isinstance(stmt.value, Call) else stmt.value


def _written(value: Call) -> Any:
    """Return the tensor that an operation writes and is, None for one that is something else."""
    spec = value.op.spec
    return arguments(value).get(spec.alias) if spec.alias and spec.alias == spec.writes else None


def _reach(program: Program, function: Function, position: int) -> Reach:
    param = function.params[position]
    assert isinstance(param.type, TensorType)
    same, found = {param}, list[Sequence[int | None]]()
    for stmt in statements(function.body):
        for expr in expressions(stmt):
            found += _writes(program, expr, same, len(param.type.shape))
        if isinstance(stmt, AssignStmt) and _gives(stmt.value, same):
            same.add(stmt.var)
        if not isinstance(stmt, (AssignStmt, EvalStmt)):
            same |= {v for v in _carried(stmt) if v.type == param.type}
    if not found:
        return None
    return [_farthest([reach[axis] for reach in found]) for axis in range(len(param.type.shape))]


def _farthest(reaches: Sequence[int | None]) -> int | None:
    return None if None in reaches else max(r for r in reaches if r is not None)


def _carried(stmt: Any) -> Iterator[Var]:
    """Yield the variables that a loop or branch hands on: each may be the tensor."""
    yield from (arg.var for arg in getattr(stmt, "iter_args", ()))
    yield from getattr(stmt, "return_vars", ())


def _gives(value: Expr, same: set[Var]) -> bool:
    """Return whether an expression may be one of some tensors."""
    if isinstance(value, Var):
        return value in same
    if isinstance(value, Call):
        alias = value.op.spec.alias
        return bool(alias) and arguments(value).get(alias) in same
    return isinstance(value, (Invoke, Submit)) and any(arg in same for arg in value.args)


def _writes(program: Program, expr: Expr, same: set[Var], rank: int) -> Iterator[Sequence[int | None]]:
    if isinstance(expr, (Invoke, Submit)):
        callee = program[expr.op.name]
        for position, arg in enumerate(expr.args):
            if arg in same:
                inner = _reach(program, callee, position)
                if inner is not None:
                    yield inner
    elif isinstance(expr, Call) and expr.op.spec.writes:
        given = arguments(expr)
        if given.get(expr.op.spec.writes) in same:
            yield _window(given, rank)


def _window(given: dict[str, Any], rank: int) -> Sequence[int | None]:
    """Return how far one store reaches along each axis."""
    source = given.get("tile") or given.get("source")
    offsets = given.get("offsets") or given.get("offset")
    is_reshaped = not isinstance(given.get("shapes", ABSENT), Absent)
    if is_reshaped or not isinstance(offsets, MakeTuple) or not isinstance(source, Expr):
        return [None] * rank
    if not isinstance(source.type, (TileType, TensorType)):
        return [None] * rank
    shape = (*(1 for _ in range(rank - len(source.type.shape))), *source.type.shape)
    return [_end(offset, extent) for offset, extent in zip(offsets.elements, shape, strict=True)]


def _end(offset: Expr, extent: Any) -> int | None:
    reach = bounds(offset)
    return reach[1] + extent if reach is not None and isinstance(extent, int) else None
