"""Narrowing: loops and branches that hand on fewer values than before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import BreakStmt, ContinueStmt, ForStmt, IfStmt, ReturnStmt, Stmt, WhileStmt, YieldStmt

T = TypeVar("T")
S = TypeVar("S", ForStmt, WhileStmt, IfStmt)


def _at(values: tuple[T, ...], positions: Sequence[int]) -> tuple[T, ...]:
    return tuple(values[i] for i in positions)


class Narrower(Rewriter):
    """A rewriter that leaves out some of the values a loop carries or a branch yields.

    `kept` says, by the statement's identity, which positions stay; statements it does not name keep all.
    """

    def __init__(self, kept: dict[int, tuple[int, ...]]) -> None:
        super().__init__()
        self.kept = kept
        self.frames: list[tuple[Stmt, tuple[int, ...] | None]] = []

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Leave out values a counted loop need not carry."""
        return self._narrowed(stmt, super().for_loop, "iter_args", "return_vars")

    def while_loop(self, stmt: WhileStmt) -> Sequence[Stmt]:
        """Leave out values a conditional loop need not carry."""
        return self._narrowed(stmt, super().while_loop, "iter_args", "return_vars")

    def branch(self, stmt: IfStmt) -> Sequence[Stmt]:
        """Leave out values a branch need not yield."""
        return self._narrowed(stmt, super().branch, "return_vars")

    def _narrowed(self, stmt: S, rewrite: Callable[[S], Sequence[Stmt]], *carried: str) -> Sequence[Stmt]:
        kept = self.kept.get(id(stmt))
        parts = {} if kept is None else {name: _at(getattr(stmt, name), kept) for name in carried}
        self.frames.append((stmt, kept))
        result = rewrite(replace(stmt, **parts) if parts else stmt)
        self.frames.pop()
        return result

    def exit(self, stmt: YieldStmt | ReturnStmt | BreakStmt | ContinueStmt) -> Sequence[Stmt]:
        """Leave out the values nobody takes; a yield of nothing goes away."""
        kept = self._frame_of(stmt)
        if kept is None:
            return super().exit(stmt)
        values = tuple(self.expr(stmt.values[i]) for i in kept) if stmt.values else ()
        return () if isinstance(stmt, YieldStmt) and not values else (replace(stmt, values=values),)

    def _frame_of(self, stmt: Stmt) -> tuple[int, ...] | None:
        if isinstance(stmt, ReturnStmt) or not self.frames:
            return None
        if isinstance(stmt, YieldStmt):
            return self.frames[-1][1]
        return next(kept for owner, kept in reversed(self.frames) if isinstance(owner, (ForStmt, WhileStmt)))
