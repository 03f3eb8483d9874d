"""Simplification: known branches taken, empty loops dropped, every value under its oldest name.

Constants fold as expressions are rebuilt, so one walk is enough for what they decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.expr import Absent, Const, Expr, Var
from tilewright.core.program import Program
from tilewright.core.rewrite import is_trivial
from tilewright.core.stmt import (
    EMPTY,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.passes.identity import Identities, written_tensor
from tilewright.passes.narrow import Narrower


def run(program: Program) -> Program:
    """Simplify every function."""
    return program.with_functions(
        [f.with_body(_Simplifier(Identities(f.body)).body(f.body)) for f in program.function_list]
    )


class _Simplifier(Narrower):
    def __init__(self, identities: Identities) -> None:
        super().__init__(identities.kept)
        self.identities = identities

    def body(self, body: SeqStmts) -> SeqStmts:
        """Simplify a body; what follows an exit never runs."""
        rewritten = super().body(body)
        for position, stmt in enumerate(rewritten.stmts[:-1]):
            if isinstance(stmt, (ReturnStmt, BreakStmt, ContinueStmt)):
                return SeqStmts(rewritten.stmts[: position + 1])
        return rewritten

    def expr(self, expr: Expr) -> Expr:
        """Name a value by its oldest name."""
        if isinstance(expr, Var):
            root = self.identities.root(expr)
            return self.replaced.get(root, root) if isinstance(root, Var) else root
        return super().expr(expr)

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Keep a write for its effect alone: its result goes by the tensor's name."""
        if written_tensor(stmt.value) is not None:
            return (EvalStmt(self.expr(stmt.value), stmt.span),)
        if is_trivial(stmt.value):
            self.replaced[stmt.var] = self.expr(stmt.value)
            return ()
        return super().assign(stmt)

    def branch(self, stmt: IfStmt) -> Sequence[Stmt]:
        """Take a branch whose condition is known; drop one that does nothing."""
        condition = self.expr(stmt.condition)
        if isinstance(condition, Const):
            return self._taken(stmt, stmt.then_body if condition.value else stmt.else_body or EMPTY)
        result = super().branch(stmt)
        only = result[0]
        if isinstance(only, IfStmt) and not only.then_body.stmts and not (only.else_body or EMPTY).stmts:
            return ()
        return result

    def _taken(self, stmt: IfStmt, body: SeqStmts) -> Sequence[Stmt]:
        self.frames.append((stmt, None))
        stmts = self.body(body).stmts
        self.frames.pop()
        if stmts and isinstance(stmts[-1], YieldStmt):
            self.replaced.update(zip(stmt.return_vars, stmts[-1].values, strict=True))
            return stmts[:-1]
        return stmts

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Drop a loop that never turns or does nothing."""
        start, stop, step = self.expr(stmt.start), self.expr(stmt.stop), self.expr(stmt.step)
        if isinstance(start, Const) and isinstance(stop, Const) and isinstance(step, Const) and step.value != 0:
            if not range(int(start.value), int(stop.value), int(step.value)) and _starts(stmt):
                self.replaced.update(
                    {v: self.expr(arg.init) for v, arg in zip(stmt.return_vars, stmt.iter_args, strict=True)}
                )
                return ()
        return super().for_loop(stmt)

    def while_loop(self, stmt: WhileStmt) -> Sequence[Stmt]:
        """Drop a loop whose condition never holds."""
        if isinstance(stmt.condition, Const) and not stmt.condition.value and _starts(stmt):
            self.replaced.update(
                {v: self.expr(arg.init) for v, arg in zip(stmt.return_vars, stmt.iter_args, strict=True)}
            )
            return ()
        return super().while_loop(stmt)


def _starts(stmt: ForStmt | WhileStmt) -> bool:
    """Return whether everything a loop carries has a value before its first turn."""
    return not any(isinstance(arg.init, Absent) for arg in stmt.iter_args)
