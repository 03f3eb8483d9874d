"""Outputs: which of its tensors a program gives back, and how far it writes into one whose shape was guessed.

An output that a caller leaves out, and whose annotation gives no shape, is taken to be like the inputs. The stores tell
when that cannot be: none of them reaches the end of an axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from tilewright.core.build import arguments
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import ABSENT, Absent, Call, Expr, Invoke, MakeTuple, Submit, Var
from tilewright.core.extents import bounds
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, EvalStmt, ReturnStmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import expressions, statements
from tilewright.dtypes import DataType
from tilewright.ops.registry import OPS
from tilewright.records import record

Reach = list[int | None] | None
"""How far along each axis something is written, None where that is unknown; None as a whole for nothing at all."""


def is_written(program: Program, function: Function, position: int) -> bool:
    """Return whether a function, or one that it calls, writes into a parameter anywhere; nothing is all of nothing."""
    type_ = function.params[position].type
    assert isinstance(type_, TensorType)
    return 0 in type_.shape or _reach(program, function, position) is not None


def unreached(program: Program, function: Function, position: int) -> tuple[int, Sequence[int | None], DataType] | None:
    """Return an axis of a parameter whose end no store reaches for certain, how far stores go, and their elements."""
    type_ = function.params[position].type
    assert isinstance(type_, TensorType)
    reach = _reach(program, function, position)
    if 0 in type_.shape:
        return None
    for axis, extent in enumerate(type_.shape):
        far = reach[axis] if reach is not None else 0
        if isinstance(extent, int) and far is not None and far < extent:
            return (
                axis,
                [_within(each, most) for each, most in zip(reach or (), type_.shape, strict=False)],
                type_.dtype,
            )
    return None


def _within(reach: int | None, extent: object) -> int | None:
    """Return how far stores go along an axis that ends: the last tile of it may not be whole."""
    return min(reach, extent) if reach is not None and isinstance(extent, int) else reach


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
    return tensor_written(stmt.value) if isinstance(stmt.value, Call) else stmt.value


def tensor_written(value: Call) -> Any:
    """Return the tensor that an operation writes and is, None for one that is something else."""
    spec = value.op.spec
    return arguments(value).get(spec.alias) if spec.alias and spec.alias == spec.writes else None


@record
class View:
    """A window of a parameter: where it starts at most along each axis, None for unknown, and which axes it has."""

    starts: tuple[int | None, ...]
    axes: tuple[int, ...] | None
    """The parameter's axis that each of its own is; None where its elements come in another order."""

    def reach(self, ends: Sequence[int | None]) -> list[int | None]:
        """Return how far along the parameter's axes a write goes that ends at `ends` along those of the view."""
        if self.axes is None:
            return [None] * len(self.starts)
        own = dict(zip(self.axes, ends, strict=True))
        return [_plus(start, own.get(axis, 1)) for axis, start in enumerate(self.starts)]

    def narrowed(self, offsets: Sequence[Expr], dropped: Sequence[int]) -> View:
        """Return a window of this one."""
        if self.axes is None:
            return self
        starts = list(self.starts)
        for axis, offset in zip(self.axes, offsets, strict=True):
            starts[axis] = _plus(starts[axis], _last(offset))
        gone = {axis % len(self.axes) for axis in dropped}
        return View(tuple(starts), tuple(axis for k, axis in enumerate(self.axes) if k not in gone))

    def reordered(self) -> View:
        """Return the same elements under another shape."""
        return View(self.starts, None)


def _plus(start: int | None, size: int | None) -> int | None:
    return None if start is None or size is None else start + size


def _last(offset: Expr) -> int | None:
    reach = bounds(offset)
    return None if reach is None else reach[1]


Views: TypeAlias = dict[Var, View]
"""The variables that stand for a parameter or a part of it."""


def _reach(program: Program, function: Function, position: int) -> Reach:
    param = function.params[position]
    assert isinstance(param.type, TensorType)
    rank = len(param.type.shape)
    all_of_it = View((0,) * rank, tuple(range(rank)))
    views, found = {param: all_of_it}, list[Sequence[int | None]]()
    for stmt in statements(function.body):
        for expr in expressions(stmt):
            found += _writes(program, expr, views)
        if isinstance(stmt, AssignStmt) and (view := _view(stmt.value, views)) is not None:
            views[stmt.var] = view
        if not isinstance(stmt, (AssignStmt, EvalStmt)):
            views |= {v: all_of_it for v in _carried(stmt) if v.type == param.type}
    if not found:
        return None
    return [_farthest([reach[axis] for reach in found]) for axis in range(rank)]


def _farthest(reaches: Sequence[int | None]) -> int | None:
    return None if None in reaches else max(r for r in reaches if r is not None)


def _carried(stmt: Any) -> Iterator[Var]:
    """Yield the variables that a loop or branch hands on: each may be the tensor."""
    yield from (arg.var for arg in getattr(stmt, "iter_args", ()))
    yield from getattr(stmt, "return_vars", ())


def _view(value: Expr, views: Views) -> View | None:
    """Return which part of the parameter an expression may be, None for something else."""
    if isinstance(value, Var):
        return views.get(value)
    if isinstance(value, (Invoke, Submit)):
        known = [(arg, views[arg]) for arg in value.args if isinstance(arg, Var) and arg in views]
        return next((view if arg.type == value.type else view.reordered() for arg, view in known), None)
    if not isinstance(value, Call) or not value.op.spec.alias:
        return None
    given: dict[str, Any] = arguments(value)
    view = views.get(given[value.op.spec.alias])
    if view is None or value.op.spec.alias == value.op.spec.writes:
        return view
    if value.op is OPS["tensor.slice"] and isinstance(given["offset"], MakeTuple):
        return view.narrowed(given["offset"].elements, given["drop_dims"] or ())
    return view.reordered()


def _writes(program: Program, expr: Expr, views: Views) -> Iterator[Sequence[int | None]]:
    if isinstance(expr, (Invoke, Submit)):
        callee = program[expr.op.name]
        for position, arg in enumerate(expr.args):
            if isinstance(arg, Var) and arg in views:
                inner = _reach(program, callee, position)
                if inner is not None:
                    yield views[arg].reach(inner)
    elif isinstance(expr, Call) and expr.op.spec.writes:
        given = arguments(expr)
        target = given.get(expr.op.spec.writes)
        if isinstance(target, Var) and target in views:
            yield views[target].reach(_window(given, target))


def _window(given: dict[str, Any], target: Var) -> Sequence[int | None]:
    """Return how far one store reaches along each axis of what it writes."""
    assert isinstance(target.type, TensorType)
    source = given.get("tile") or given.get("source")
    offsets = given.get("offsets") or given.get("offset")
    is_reshaped = not isinstance(given.get("shapes", ABSENT), Absent)
    rank = len(target.type.shape)
    if is_reshaped or not isinstance(offsets, MakeTuple) or not isinstance(source, Expr):
        return [None] * rank
    if not isinstance(source.type, (TileType, TensorType)):
        return [None] * rank
    shape = (*(1 for _ in range(rank - len(source.type.shape))), *source.type.shape)
    return [_end(offset, extent) for offset, extent in zip(offsets.elements, shape, strict=True)]


def _end(offset: Expr, extent: Any) -> int | None:
    return _plus(_last(offset), extent if isinstance(extent, int) else None)
