"""Unrolling: `pl.unroll` loops written out, one copy of the body per turn."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.enums import ForKind
from tilewright.core.expr import Const, constant
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import ForStmt, Stmt, YieldStmt
from tilewright.core.types import ScalarType
from tilewright.core.visitor import statements


def run(program: Program) -> Program:
    """Write out every `pl.unroll` loop."""
    return program.with_functions([_unrolled(function) for function in program.function_list])


def _unrolled(function: Function) -> Function:
    loops = (stmt for stmt in statements(function.body) if isinstance(stmt, ForStmt))
    if not any(loop.kind is ForKind.Unroll for loop in loops):
        return function
    return function.with_body(_Unroller().body(function.body))


class _Unroller(Rewriter):
    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Replace an unrolled loop by its turns, each with the loop variable as a number."""
        start, stop, step = (self.expr(e) for e in (stmt.start, stmt.stop, stmt.step))
        if not (isinstance(start, Const) and isinstance(stop, Const) and isinstance(step, Const)):
            return super().for_loop(stmt)
        if stmt.kind is not ForKind.Unroll:
            return super().for_loop(stmt)
        assert isinstance(stmt.loop_var.type, ScalarType)
        values = tuple(self.expr(arg.init) for arg in stmt.iter_args)
        result: list[Stmt] = []
        for index in range(int(start.value), int(stop.value), int(step.value)):
            turn = _Unroller(self.replaced, self.symbols, fresh=True)
            turn.replaced[stmt.loop_var] = constant(index, stmt.loop_var.type.dtype)
            turn.replaced.update(zip((arg.var for arg in stmt.iter_args), values, strict=True))
            stmts = turn.body(stmt.body).stmts
            if stmts and isinstance(stmts[-1], YieldStmt):
                values = stmts[-1].values
                stmts = stmts[:-1]
            result.extend(stmts)
        self.replaced.update(zip(stmt.return_vars, values, strict=True))
        return result
