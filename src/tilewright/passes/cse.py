"""Common subexpressions: one op where two would give the same value.

Reads of memory count as the same only while nothing has been written in between. Kernel scopes start afresh, because
a tile cannot leave the kernel that computed it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from tilewright.core.expr import Call, Expr, Var
from tilewright.core.op import Effect
from tilewright.core.program import Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    InCoreScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
)
from tilewright.core.types import TensorType
from tilewright.passes.effects import effect_of, writes_memory


def run(program: Program) -> Program:
    """Merge equal computations in every function."""
    return program.with_functions([f.with_body(_Merger().body(f.body)) for f in program.function_list])


class _Merger(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.scopes: list[dict[Hashable, Var]] = []
        self.epoch = 0

    def body(self, body: SeqStmts) -> SeqStmts:
        """Merge within a body; what it computes is unknown outside."""
        self.scopes.append({})
        result = super().body(body)
        self.scopes.pop()
        return result

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Replace a variable by an earlier one of the same value."""
        result = super().assign(stmt)
        if not result or not isinstance(kept := result[0], AssignStmt):
            return result
        key = self._key(kept.value)
        if key is None:
            return result
        known = next(filter(None, (scope.get(key) for scope in reversed(self.scopes))), None)
        if known is not None and known.type == kept.var.type:
            self.replaced[stmt.var] = known
            return ()
        self.scopes[-1][key] = kept.var
        return result

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Note what an effect may have changed."""
        result = super().evaluate(stmt)
        self._note(stmt.expr)
        return result

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """A body that writes starts every turn with memory unknown."""
        return self._loop(stmt, super().for_loop)

    def while_loop(self, stmt: WhileStmt) -> Sequence[Stmt]:
        """A body that writes starts every turn with memory unknown."""
        return self._loop(stmt, super().while_loop)

    def _loop(self, stmt: Any, walk: Any) -> Sequence[Stmt]:
        changes = writes_memory(stmt.body)
        self.epoch += changes
        result = walk(stmt)
        self.epoch += changes
        return result

    def scope(self, stmt: Any) -> Sequence[Stmt]:
        """A kernel shares nothing with what is around it."""
        if not isinstance(stmt, (InCoreScopeStmt, SpmdScopeStmt)):
            return super().scope(stmt)
        outer, self.scopes = self.scopes, []
        result = super().scope(stmt)
        self.scopes = outer
        return result

    def _key(self, value: Expr) -> Hashable | None:
        effect = self._note(value)
        changes = effect is Effect.WRITE or effect is Effect.ALLOCATE
        if changes or not isinstance(value, Call) or _is_new_tensor(value):
            return None
        return value.op, value.args, _exact(value.attributes), self.epoch if effect is Effect.READ else None

    def _note(self, value: Expr) -> Effect:
        effect = effect_of(value)
        self.epoch += effect is Effect.WRITE
        return effect


def _is_new_tensor(value: Call) -> bool:
    """Return whether an op computes a tensor: a buffer of its own, made from what others hold at that moment."""
    return isinstance(value.type, TensorType) and value.op.spec.alias is None


def _exact(attributes: object) -> str:
    """Return attributes as text, in which 1, True and 1.0 differ."""
    return repr(attributes)
