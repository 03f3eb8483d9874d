"""SSA: every variable defined once, carried values made explicit.

A name assigned in a loop becomes a value the loop carries; a name assigned in a branch becomes a value the branch
yields; both only where somebody reads it later. Exits carry what their loop carries. Scopes hide nothing, so a `with`
is walked as if it were not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.core.expr import ABSENT, Expr, Var
from tilewright.core.extents import bounds
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter, is_trivial
from tilewright.core.stmt import (
    SCOPES,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ExitStmt,
    ForStmt,
    IfStmt,
    IterArg,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import ScalarType, is_moving, join
from tilewright.passes.liveness import Liveness, assigned_in, task_of
from tilewright.records import record


def run(program: Program) -> Program:
    """Convert every function to SSA form."""
    return program.with_functions([convert(function) for function in program.function_list])


def convert(function: Function) -> Function:
    """Return a function in SSA form; one that is in it already comes back equal."""
    stmts, end = _Converter(Liveness(function)).body(function.body)
    return function.with_body(SeqStmts((*stmts, *_ending(end))))


GONE = ReturnStmt()
"""Stands for an exit that has been taken on every path already."""


def _ending(end: ExitStmt | None) -> tuple[Stmt, ...]:
    return () if end is None or end is GONE else (end,)


@record
class _Loop:
    """The innermost loop: its explicit values, and the variables it carries besides."""

    explicit: tuple[Var, ...]
    carried: tuple[Var, ...]


class _Converter:
    """Walks a function with the current value of every variable in hand."""

    def __init__(self, liveness: Liveness) -> None:
        self.live = liveness
        self.rewriter = Rewriter()
        self.loops: list[_Loop] = []
        self.hollow: set[Var] = set()
        """Variables that some loop started without a value."""

    @property
    def values(self) -> dict[Var, Expr]:
        """What each variable stands for at this point."""
        return self.rewriter.replaced

    def current(self, var: Var) -> Expr:
        """Return what a variable stands for now."""
        return self.values.get(var, var)

    def body(self, body: SeqStmts) -> tuple[list[Stmt], ExitStmt | None]:
        """Return a body's statements and how it ends; what follows an exit is dropped."""
        result: list[Stmt] = []
        for stmt in body.stmts:
            end = self.stmt(stmt, result)
            if end is not None:
                return result, end
        return result, None

    def stmt(self, stmt: Stmt, out: list[Stmt]) -> ExitStmt | None:
        """Convert one statement into `out`; return the exit it is or always takes."""
        match stmt:
            case AssignStmt():
                self._assign(stmt, out)
            case EvalStmt():
                out.extend(self.rewriter.evaluate(stmt))
            case YieldStmt() | ReturnStmt():
                return replace(stmt, values=self.rewriter.exprs(stmt.values))
            case BreakStmt() | ContinueStmt():
                return replace(stmt, values=self._handed_on(stmt))
            case IfStmt():
                return self._if(stmt, out)
            case ForStmt() | WhileStmt():
                self._loop(stmt, out)
            case _:
                return self._scope(stmt, out)
        return None

    def _assign(self, stmt: AssignStmt, out: list[Stmt]) -> None:
        value = self.rewriter.expr(stmt.value)
        if is_trivial(value):
            self.values[stmt.var] = value
            return
        if stmt.var not in self.live.tracked and value is stmt.value and not is_moving(stmt.var.type):
            out.append(stmt)
            return
        reach = bounds(value) if isinstance(value.type, ScalarType) else None
        var = Var(stmt.var.name_hint, value.type, stmt.var.span, reach)
        self.values[stmt.var] = var
        out.append(AssignStmt(var, value, stmt.span))

    def _handed_on(self, stmt: BreakStmt | ContinueStmt) -> tuple[Expr, ...]:
        loop = self.loops[-1]
        explicit = self.rewriter.exprs(stmt.values) if stmt.values else tuple(self.current(v) for v in loop.explicit)
        return (*explicit, *(self.current(var) for var in loop.carried))

    def _scope(self, stmt: Any, out: list[Stmt]) -> ExitStmt | None:
        assert isinstance(stmt, SCOPES)
        hollow = self.rewriter.scope(replace(stmt, body=SeqStmts()))[0]
        stmts, end = self.body(stmt.body)
        assert isinstance(hollow, SCOPES)
        changes: dict[str, Any] = {"body": SeqStmts(tuple(stmts))}
        for task in task_of(stmt):
            if task in self.live.tracked:
                self.values[task] = changes["task"] = Var(task.name_hint, task.type, task.span)
        out.append(replace(hollow, **changes))
        return end

    def _if(self, stmt: IfStmt, out: list[Stmt]) -> ExitStmt | None:
        condition = self.rewriter.expr(stmt.condition)
        before = dict(self.values)
        then_stmts, then_end = self.body(stmt.then_body)
        then_values = self._swap(before)
        else_stmts, else_end = self.body(stmt.else_body) if stmt.else_body is not None else ([], None)
        else_values = self._swap(before)
        merged = self._merged(stmt, (then_end, then_values), (else_end, else_values))
        results = (*stmt.return_vars, *(var for _, var in merged))
        then_body = self._branch(then_stmts, then_end, [then_values.get(v, v) for v, _ in merged])
        else_body = self._branch(else_stmts, else_end, [else_values.get(v, v) for v, _ in merged])
        has_else = stmt.else_body is not None or bool(results)
        out.append(IfStmt(condition, then_body, else_body if has_else else None, results, stmt.span))
        self.values.update({old: new for old, new in merged})
        return GONE if _leaves(then_end) and _leaves(else_end) else None

    def _swap(self, values: dict[Var, Expr]) -> dict[Var, Expr]:
        """Start again from `values`; return what had been reached."""
        reached, self.rewriter.replaced = self.rewriter.replaced, dict(values)
        return reached

    def _merged(self, stmt: IfStmt, *branches: tuple[ExitStmt | None, dict[Var, Expr]]) -> list[tuple[Var, Var]]:
        """Return the variables on which the branches that go on disagree, each with the result that settles it."""
        going_on = [values for end, values in branches if not _leaves(end)]
        if not going_on:
            return []
        assigned = assigned_in(stmt) & self.live.after(stmt)
        merged: list[tuple[Var, Var]] = []
        for var in self.live.ordered(assigned):
            reached = [values.get(var, var) for values in going_on]
            if len(branches) == len(going_on) and all(value is reached[0] for value in reached):
                self.values[var] = reached[0]
                continue
            type_ = reached[0].type
            for value in reached[1:]:
                type_ = join(type_, value.type) or var.type
            merged.append((var, Var(var.name_hint, type_, stmt.span)))
        return merged

    def _branch(self, stmts: list[Stmt], end: ExitStmt | None, extra: Sequence[Expr]) -> SeqStmts:
        if _leaves(end):
            return SeqStmts((*stmts, *_ending(end)))
        explicit = end.values if end is not None else ()
        values = (*explicit, *extra)
        return SeqStmts((*stmts, YieldStmt(values)) if values else tuple(stmts))

    def _loop(self, stmt: ForStmt | WhileStmt, out: list[Stmt]) -> None:
        carried = self.live.ordered(self.live.carried(stmt))
        explicit = [IterArg(arg.var, self.rewriter.expr(arg.init)) for arg in stmt.iter_args]
        limits = (
            [self.rewriter.expr(e) for e in (stmt.start, stmt.stop, stmt.step)] if isinstance(stmt, ForStmt) else []
        )
        implicit = [IterArg(Var(v.name_hint, v.type, v.span), self._initial(v, stmt)) for v in carried]
        for var, arg in zip(carried, implicit, strict=True):
            self.values[var] = arg.var
        condition = self.rewriter.expr(stmt.condition) if isinstance(stmt, WhileStmt) else None
        self.loops.append(_Loop(tuple(arg.var for arg in explicit), tuple(carried)))
        stmts, end = self.body(stmt.body)
        self.loops.pop()
        values = (*(end.values if isinstance(end, YieldStmt) else ()), *(self.current(var) for var in carried))
        closing = _ending(end) if _leaves(end) else (YieldStmt(values),) if values else ()
        results = tuple(Var(v.name_hint, v.type, v.span) for v in carried)
        self.values.update(zip(carried, results, strict=True))
        for var in assigned_in(stmt) - set(carried):  # what the body gave it ends with the body
            self.values.pop(var, None)
            self.hollow.add(var)
        common: dict[str, Any] = {
            "body": SeqStmts((*stmts, *closing)),
            "iter_args": (*explicit, *implicit),
            "return_vars": (*stmt.return_vars, *results),
        }
        if isinstance(stmt, ForStmt):
            start, stop, step = limits
            out.append(replace(stmt, start=start, stop=stop, step=step, **common))
        elif condition is not None:
            out.append(replace(stmt, condition=condition, **common))

    def _initial(self, var: Var, stmt: ForStmt | WhileStmt) -> Expr:
        """Return what a carried variable starts as: nothing when no path to the loop has bound it."""
        is_bound = var in self.values or var in self.live.params
        if is_bound and (var not in self.hollow or var in self.live.before(stmt)):
            return self.current(var)
        self.hollow.add(var)
        return ABSENT


def _leaves(end: ExitStmt | None) -> bool:
    """Return whether a branch never reaches the statement after it."""
    return end is not None and not isinstance(end, YieldStmt)
