"""Exits: what leaves a loop or a function before its end, in PTO text, which has branches and conditions instead.

What follows a branch of which one side leaves becomes part of the other side. A loop that something leaves is an
`scf.while`, which carries whether there is another turn, and whether the function has returned.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tilewright import dtypes as dt
from tilewright.core.endings import ends
from tilewright.core.stmt import (
    EMPTY,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    LoopStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.programs.pto_text.flow import Flow
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import NoPtoError, Number

_MOST_COPIES = 16
"""How often what follows branches may be written."""


def exits(body: Sequence[Stmt] | SeqStmts) -> Iterator[BreakStmt | ContinueStmt | ReturnStmt]:
    """Yield the statements that leave what a body is part of, those not that leave a loop in it alone."""
    for stmt in body:
        match stmt:
            case BreakStmt() | ContinueStmt() | ReturnStmt():
                yield stmt
            case IfStmt():
                yield from exits((*stmt.then_body, *(stmt.else_body or ())))
            case ForStmt() | WhileStmt():
                yield from (each for each in exits(stmt.body) if isinstance(each, ReturnStmt))
            case _:
                pass


class Exits(Flow):
    """What loops and branches are written with that something may leave."""

    _copies = 1
    """How often what is being written stands in the text."""
    _returned: Number | None = None
    """Whether the function has returned from inside of the loop that was written last."""

    def leaves(self, stmt: Stmt, rest: Sequence[Stmt]) -> bool:
        """Write a statement that may leave what it is part of, and what follows it; return False for any other one."""
        if not isinstance(stmt, IfStmt | ForStmt | WhileStmt) or not any(exits([stmt])):
            return False
        outer, self.w.span = self.w.span, stmt.span
        if isinstance(stmt, IfStmt):
            self._split(stmt, rest)
        else:
            self.stmt(stmt)
            assert self._returned is not None, "a loop has lost its return"
            self.last(self._returned, (SeqStmts((ReturnStmt(),)), SeqStmts((*rest,))))
        self.w.span = outer
        return True

    def stmt(self, stmt: Stmt) -> None:
        """Write one statement."""
        raise NotImplementedError

    def _split(self, stmt: IfStmt, rest: Sequence[Stmt]) -> None:
        sides = stmt.then_body, stmt.else_body or EMPTY
        if any(map(ends, sides)):
            self._followed(stmt, sides, rest)
            return
        with self.again():
            self._followed(stmt, sides, rest)

    @contextmanager
    def again(self) -> Generator[None]:
        """Let something be written twice; NoPtoError where it then stands in the text too often."""
        if self._copies * 2 > _MOST_COPIES:
            message = f"this export would write what follows more than {_MOST_COPIES} times"
            raise NoPtoError(message, help="leave from branches that stand by themselves")
        self._copies *= 2
        yield
        self._copies //= 2

    def _followed(self, stmt: IfStmt, sides: tuple[SeqStmts, SeqStmts], rest: Sequence[Stmt]) -> None:
        first, second = (_followed(stmt, side, rest) for side in sides)
        condition = self.number(stmt.condition)
        if condition.known is not None:
            self.write(first if condition.known else second)
        else:
            self.last(condition, (first, second))

    def leave(self, stmt: BreakStmt | ContinueStmt | ReturnStmt) -> None:
        """Write the end of a turn, or of the function."""
        if not isinstance(stmt, ReturnStmt):
            self.hand_on([self.value(value) for value in stmt.values], isinstance(stmt, ContinueStmt))
        elif self.frames[-1].besides:
            self.hand_on(self.frames[-1].targets, goes_on=False, returns=True)

    def loop(self, stmt: ForStmt, start: Number, step: Number) -> None:
        """Write a counted loop."""
        flags = self._flags(stmt)
        if not flags:
            super().loop(stmt, start, step)
            return
        count = self.count(stmt, start, step)
        first, stop, pace = count.ends

        def holds(carried: Sequence[Number]) -> Number:
            is_inside = computed(self.w, "lt", [carried[0], stop], dt.BOOL)
            return self.w.number("arith.andi", [carried[1], is_inside], dt.BOOL, "i1")

        def begin(carried: Sequence[Number]) -> tuple[Number, ...]:
            turn = replace(carried[0], counts=count.is_natural)
            self.values[stmt.loop_var] = count.at(self.w, turn)
            return (computed(self.w, "add", [turn, pace], dt.INDEX),)

        self._returned = self._rest(
            self.rounds(_closed(stmt), [(stmt.loop_var.name_hint, first), *flags], holds, begin), 2
        )

    def repeat(self, stmt: WhileStmt) -> None:
        """Write a loop that asks before each round whether there is one more."""
        flags = self._flags(stmt)
        if not flags:
            super().repeat(stmt)
            return

        def holds(carried: Sequence[Number]) -> Number:
            """Ask only where nothing has left the loop: what is asked may read memory."""
            result = Number(self.w.name("holds"), dt.BOOL)
            with self.w.branch(f"{result.name} = scf.if {carried[0].name} -> (i1)") as otherwise:
                self.w.line(f"scf.yield {self.number(stmt.condition).name} : i1")
                otherwise()
                self.w.line(f"scf.yield {self.w.constant(False, dt.BOOL).name} : i1")
            return result

        self._returned = self._rest(self.rounds(_closed(stmt), flags, holds, lambda _: ()), 1)

    def _flags(self, stmt: LoopStmt) -> list[tuple[str, Number]]:
        """Return what a loop that is left carries: whether it goes on, and whether the function has returned."""
        found = {type(each) for each in exits(stmt.body)}
        more, returned = (self.w.constant(each, dt.BOOL) for each in (True, False))
        if ReturnStmt in found:
            return [("more", more), ("returned", returned)]
        return [("more", more)] if BreakStmt in found else []

    @staticmethod
    def _rest(numbers: Sequence[Number], count: int) -> Number | None:
        return numbers[count] if len(numbers) > count else None


def _closed(stmt: LoopStmt) -> LoopStmt:
    """Return a loop whose turns end with a statement, also where the program carries nothing to the next one."""
    if ends(stmt.body) or any(isinstance(each, YieldStmt) for each in stmt.body):
        return stmt
    return replace(stmt, body=SeqStmts((*stmt.body, YieldStmt(()))))


def _followed(stmt: IfStmt, side: SeqStmts, rest: Sequence[Stmt]) -> SeqStmts:
    """Return a side of a branch with what follows the branch, which it gives its values."""
    if ends(side):
        return side
    handed = next((each.values for each in side if isinstance(each, YieldStmt)), ())
    given = [AssignStmt(var, value) for var, value in zip(stmt.return_vars, handed, strict=True)]
    return SeqStmts((*(each for each in side if not isinstance(each, YieldStmt)), *given, *rest))
