"""Narrowing: loops and branches that hand on fewer values than before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import (
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)

T = TypeVar("T")


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
        kept = self.kept.get(id(stmt))
        self.frames.append((stmt, kept))
        narrowed = (
            stmt
            if kept is None
            else replace(stmt, iter_args=_at(stmt.iter_args, kept), return_vars=_at(stmt.return_vars, kept))
        )
        result = super().for_loop(narrowed)
        self.frames.pop()
        return result

    def while_loop(self, stmt: WhileStmt) -> Sequence[Stmt]:
        """Leave out values a conditional loop need not carry."""
        kept = self.kept.get(id(stmt))
        self.frames.append((stmt, kept))
        narrowed = (
            stmt
            if kept is None
            else replace(stmt, iter_args=_at(stmt.iter_args, kept), return_vars=_at(stmt.return_vars, kept))
        )
        result = super().while_loop(narrowed)
        self.frames.pop()
        return result

    def branch(self, stmt: IfStmt) -> Sequence[Stmt]:
        """Leave out values a branch need not yield."""
        kept = self.kept.get(id(stmt))
        narrowed = stmt if kept is None else replace(stmt, return_vars=_at(stmt.return_vars, kept))
        self.frames.append((stmt, kept))
        result = super().branch(narrowed)
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
