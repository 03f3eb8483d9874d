"""Liveness: which variables are read later, for the ones a structured walk alone cannot decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tilewright.core.expr import Var
from tilewright.core.program import Function
from tilewright.core.rewrite import loop_reach
from tilewright.core.stmt import (
    SCOPES,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
)
from tilewright.core.visitor import bodies, defined, statements, used, variables

Variables = frozenset[Var]
NOTHING: Variables = frozenset()


def assigned(stmt: Stmt) -> tuple[Var, ...]:
    """Return the variable that a statement assigns where it stands: an assignment's, or the task of a scope."""
    return defined(stmt) if isinstance(stmt, AssignStmt) else task_of(stmt)


def task_of(stmt: Stmt) -> tuple[Var, ...]:
    """Return the task that a scope names, if it does."""
    task = getattr(stmt, "task", None)
    return (task,) if isinstance(task, Var) else ()


def assigned_in(stmt: Stmt) -> Variables:
    """Return the variables assigned anywhere below a statement."""
    return frozenset(var for body in bodies(stmt) for inner in statements(body) for var in assigned(inner))


class Liveness:
    """What is live around the loops and branches of one function.

    Only `tracked` variables are followed: those assigned more than once, and those read outside the block that
    assigns them. Everything else is in SSA form already.
    """

    def __init__(self, function: Function) -> None:
        self.params = frozenset(function.params)
        self._order: dict[Var, int] = {}
        self._regions: dict[Var, int] = dict.fromkeys(function.params, 0)
        self._multiple: set[Var] = set()
        self._count = 0
        self._assignments: Counter[Var] = Counter(function.params)
        self._inside: dict[int, Variables] = {}
        self._read: dict[int, Variables] = {}
        self._find(function.body, [0])
        self.tracked: Variables = frozenset(self._multiple)
        self._after: dict[int, Variables] = {}
        self._before: dict[int, Variables] = {}
        self._carried: dict[int, Variables] = {}
        self._needed: dict[int, Variables] = {}
        if self.tracked:
            self._body(function.body, NOTHING, NOTHING, NOTHING)

    def after(self, stmt: Stmt) -> Variables:
        """Return what is read after a branch or loop."""
        return self._after.get(id(stmt), NOTHING)

    def before(self, stmt: ForStmt | WhileStmt) -> Variables:
        """Return what a loop may read of the values that variables have when it starts."""
        return self._before.get(id(stmt), NOTHING)

    def carried(self, stmt: ForStmt | WhileStmt) -> Variables:
        """Return what a loop must carry from turn to turn or out."""
        return self._carried.get(id(stmt), NOTHING)

    def ordered(self, variables: Iterable[Var]) -> list[Var]:
        """Return variables in the order the function first assigns them."""
        return sorted(variables, key=lambda var: self._order.get(var, -1))

    def _find(self, body: SeqStmts, regions: list[int]) -> None:
        """Note each variable's region; one that is assigned again or read outside it is tracked."""
        for stmt in body:
            self._read[id(stmt)] = frozenset(variables(used(stmt)))
            for var in self._read[id(stmt)]:
                if self._regions.get(var, 0) not in regions:
                    self._multiple.add(var)
            for var in assigned(stmt):
                self._note(var, regions)
            for var in defined(stmt):
                self._regions.setdefault(var, regions[-1])
            transparent = isinstance(stmt, SCOPES)
            for inner in bodies(stmt):
                self._count += 1
                own = regions if transparent else [*regions, self._count]
                if isinstance(stmt, (ForStmt, WhileStmt)):
                    self._regions.update({v: own[-1] for v in defined(stmt) if v not in stmt.return_vars})
                self._find(inner, own)

    def _note(self, var: Var, regions: list[int]) -> None:
        if var in self._regions:
            self._multiple.add(var)
        else:
            self._regions[var] = regions[-1]
        self._order.setdefault(var, len(self._order))
        self._assignments[var] += 1

    def _body(self, body: SeqStmts, live: Variables, on_break: Variables, on_continue: Variables) -> Variables:
        """Return what is live before a body, given what is live after it and at its loop's exits."""
        for stmt in reversed(body.stmts):
            live = self._stmt(stmt, live, on_break, on_continue)
        return live

    def _stmt(self, stmt: Stmt, live: Variables, on_break: Variables, on_continue: Variables) -> Variables:
        match stmt:
            case AssignStmt():
                return (live - {stmt.var}) | self._reads(stmt)
            case ReturnStmt():
                return self._reads(stmt)
            case BreakStmt():
                return on_break | self._reads(stmt)
            case ContinueStmt():
                return on_continue | self._reads(stmt)
            case IfStmt():
                self._after[id(stmt)] = self._after.get(id(stmt), NOTHING) | live
                then = self._body(stmt.then_body, live, on_break, on_continue)
                other = self._body(stmt.else_body, live, on_break, on_continue) if stmt.else_body is not None else live
                return then | other | self._reads(stmt)
            case ForStmt() | WhileStmt():
                return self._loop(stmt, live)
            case _:
                for inner in bodies(stmt):
                    live = self._body(inner, live, on_break, on_continue)
                return (live - set(task_of(stmt))) | self._reads(stmt)

    def _loop(self, stmt: ForStmt | WhileStmt, live: Variables) -> Variables:
        self._after[id(stmt)] = self._after.get(id(stmt), NOTHING) | live
        test = frozenset(variables([stmt.condition])) & self.tracked if isinstance(stmt, WhileStmt) else NOTHING
        entry = live | test | self._needs(stmt)
        turned = self._body(stmt.body, entry, live, entry)
        self._carried[id(stmt)] = self._carried.get(id(stmt), NOTHING) | (assigned_in(stmt) & entry & self.tracked)
        first = turned if _surely_turns(stmt) else entry
        self._before[id(stmt)] = self._before.get(id(stmt), NOTHING) | first
        return (first - self._own(stmt)) | self._reads(stmt)

    def _needs(self, stmt: ForStmt | WhileStmt) -> Variables:
        """Return what the body of a loop reads before it assigns it, whatever is live after it.

        What is live before a body is this and some of what is live after it. So the end of a turn and what follows the
        loop add nothing else, and each loop is walked once for this and once for the answer: walking until nothing
        changes would double with each loop around it.
        """
        if id(stmt) not in self._needed:
            self._needed[id(stmt)] = self._body(stmt.body, NOTHING, NOTHING, NOTHING)
        return self._needed[id(stmt)]

    def _own(self, stmt: ForStmt | WhileStmt) -> Variables:
        """Return the variables that only a loop assigns: before it they have no value, even when it has run already."""
        if id(stmt) not in self._inside:
            counts = Counter(var for s in statements(stmt.body) for var in assigned(s))
            self._inside[id(stmt)] = frozenset(v for v, count in counts.items() if count == self._assignments[v])
        return self._inside[id(stmt)]

    def _reads(self, stmt: Stmt) -> Variables:
        return self._read[id(stmt)] & self.tracked


def _surely_turns(stmt: ForStmt | WhileStmt) -> bool:
    """Return whether a loop is known to turn at least once."""
    return isinstance(stmt, ForStmt) and loop_reach(stmt.start, stmt.stop, stmt.step) is not None
