"""Simplification: known branches taken, empty loops dropped, every value under its oldest name.

Constants fold as expressions are rebuilt, so one walk is enough for what they decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, Var
from tilewright.core.program import Program
from tilewright.core.rewrite import is_trivial
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, Stmt, WhileStmt
from tilewright.core.visitor import bodies
from tilewright.passes.identity import Identities, identities
from tilewright.passes.narrow import Narrower


def run(program: Program) -> Program:
    """Simplify every function."""
    known = identities(program.function_list)
    return program.with_functions([f.with_body(_Simplifier(known[f.name]).body(f.body)) for f in program.function_list])


class _Simplifier(Narrower):
    def __init__(self, identities: Identities) -> None:
        super().__init__(identities.kept)
        self.identities = identities

    def expr(self, expr: Expr) -> Expr:
        """Name a value by its oldest name."""
        if isinstance(expr, Var):
            root = self.identities.root(expr)
            return self.replaced.get(root, root) if isinstance(root, Var) else root
        return super().expr(expr)

    def changes_names(self) -> bool:
        """Return whether any variable may stand for something else, its oldest name among them."""
        return bool(self.identities.same) or super().changes_names()

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Keep a write for its effect alone: its result goes by the tensor's name."""
        if stmt.var in self.identities.same:
            keeps = isinstance(stmt.value, (Call, Invoke))
            return (EvalStmt(self.expr(stmt.value), stmt.span),) if keeps else ()
        if is_trivial(stmt.value):
            self.replaced[stmt.var] = self.expr(stmt.value)
            return ()
        return super().assign(stmt)

    def branch(self, stmt: IfStmt) -> Sequence[Stmt]:
        """Drop a branch that does nothing."""
        result = super().branch(stmt)
        does_nothing = len(result) == 1 and isinstance(only := result[0], IfStmt) and not any(map(len, bodies(only)))
        return () if does_nothing else result

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Drop a loop that never turns or does nothing."""
        start, stop, step = self.expr(stmt.start), self.expr(stmt.stop), self.expr(stmt.step)
        if isinstance(start, Const) and isinstance(stop, Const) and isinstance(step, Const) and step.value != 0:
            if not range(int(start.value), int(stop.value), int(step.value)) and _starts(stmt):
                return self._skipped(stmt)
        return super().for_loop(stmt)

    def while_loop(self, stmt: WhileStmt) -> Sequence[Stmt]:
        """Drop a loop whose condition never holds."""
        if isinstance(stmt.condition, Const) and not stmt.condition.value and _starts(stmt):
            return self._skipped(stmt)
        return super().while_loop(stmt)

    def _skipped(self, stmt: ForStmt | WhileStmt) -> Sequence[Stmt]:
        """Return nothing for a loop, which gives what it starts with."""
        self.replaced |= {v: self.expr(arg.init) for v, arg in zip(stmt.return_vars, stmt.iter_args, strict=True)}
        return ()


def _starts(stmt: ForStmt | WhileStmt) -> bool:
    """Return whether everything a loop carries has a value before its first turn."""
    return not any(isinstance(arg.init, Absent) for arg in stmt.iter_args)
