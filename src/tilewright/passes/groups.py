"""Groups: the functions that run at the same time and meet in pipes, and how many lanes the vector side has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.core.build import arguments
from tilewright.core.enums import FunctionType
from tilewright.core.expr import Call, Expr, Invoke
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, EvalStmt, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import evaluated, expressions, statements
from tilewright.ops.pipes import PIPES, axis_of, number_of
from tilewright.records import record


@record
class Side:
    """A call that runs beside the others of its group, and on which lane of the vector side."""

    stmt: AssignStmt | EvalStmt
    call: Invoke
    lane: int = 0


@record
class Sides:
    """The calls of a group that meet in pipes."""

    sides: tuple[Side, ...]
    lanes: int

    def begins(self, stmt: Stmt) -> bool:
        """Return whether all of them run where a statement stands."""
        return stmt is self.sides[0].stmt

    def has(self, what: Stmt | Expr) -> bool:
        """Return whether a statement or call is one of them."""
        return any(what is side.stmt or what is side.call for side in self.sides)


def sides_of(program: Program) -> Mapping[str, Sides]:
    """Return what runs beside each other in each function that calls functions with pipes."""
    piped = {f.name for f in program.function_list if any(_pipe_ops(f))}
    found: dict[str, Sides] = {}
    for function in program.function_list:
        calls = [
            (stmt, call)
            for stmt in function.body
            if isinstance(call := evaluated(stmt), Invoke) and call.op.name in piped
        ]
        if function.func_type is FunctionType.Group and calls:
            found[function.name] = _sides(program, calls)
    return found


def _sides(program: Program, calls: list[tuple[Stmt, Invoke]]) -> Sides:
    functions = [program[call.op.name] for _, call in calls]
    lanes = 2 if _uses_both_lanes(functions) else 1
    sides: list[Side] = []
    for (stmt, call), function in zip(calls, functions, strict=True):
        assert isinstance(stmt, (AssignStmt, EvalStmt))
        count = lanes if function.func_type is FunctionType.AIV else 1
        sides += [Side(stmt, call, lane) for lane in range(count)]
    return Sides(tuple(sides), lanes)


def _uses_both_lanes(functions: list[Function]) -> bool:
    """Return whether the vector side runs twice: where it says so, and where it takes or gives halves."""
    if any(f.attrs.get("dual_aiv_dispatch") for f in functions):
        return True
    ops = [(call.op.spec.name, arguments(call), call) for f in functions for call in _pipe_ops(f)]
    for push, pop in (("tpush_to_aiv", "tpop_from_aic"), ("tpush_to_aic", "tpop_from_aiv")):
        given = {number_of(_id(a)): a["tile"] for name, a, _ in ops if name == push and axis_of(_split(a)) is not None}
        for name, a, call in ops:
            tile = given.get(number_of(_id(a))) if name == pop else None
            if isinstance(tile, Expr) and _shape(tile) != _shape(call):
                return True
    return False


def _split(bound: Mapping[str, object]) -> int | None:
    split = bound.get("split")
    return split if isinstance(split, int) else None


def _id(bound: Mapping[str, object]) -> int | None:
    id = bound.get("id")
    return id if isinstance(id, int) else None


def _shape(value: Expr) -> tuple[int, ...]:
    return value.type.shape if isinstance(value.type, TileType) else ()


def _pipe_ops(function: Function) -> Iterator[Call]:
    for stmt in statements(function.body):
        yield from (e for e in expressions(stmt) if isinstance(e, Call) and e.op.spec.name in PIPES)
