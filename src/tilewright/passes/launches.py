"""Launches: what a program runs side by side, in which order, and what each of it reads and writes.

A grid runs a function once per block, a parallel loop its turns. Inside one of them everything is in order: the turns
of a loop within a turn, and the blocks that a block dispatches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tilewright.core.access import Access
from tilewright.core.enums import ForKind
from tilewright.core.expr import Invoke, Submit, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import BreakStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.visitor import bodies, defined, expressions, statements
from tilewright.passes.aliases import NOBODY, Footprints, Owners
from tilewright.records import record

Touched: TypeAlias = Mapping[Access, Owners]


@record
class Launch:
    """One thing that is started: a kernel once, a grid of blocks, or the turns of a parallel loop."""

    name: str
    count: str
    """How many run side by side, as the program says it; empty for one."""
    around: tuple[str, ...]
    """The loops and branches it is started in, outermost first."""
    touched: Touched
    """Whose memory it reads, writes and adds to."""
    after: tuple[int, ...]
    """The numbers of those before it that it has to wait for."""

    @property
    def what(self) -> str:
        """What is started, and where."""
        return " ".join(filter(None, (self.name, self.count, *self.around)))

    @property
    def does(self) -> str:
        """What it does to memory, and which of those before it have to have ended."""
        named = [(access, sorted(var.name_hint for var in owners)) for access, owners in self.touched.items()]
        parts = [f"{access.value} {', '.join(names)}" for access, names in named if names]
        return "; ".join([*parts, *[f"after {', '.join(str(n + 1) for n in self.after)}"] * bool(self.after)])


def runs_side_by_side(loop: ForStmt) -> bool:
    """Return whether the turns of a loop may run at the same time: none hands a value on or ends the others."""
    return loop.kind is ForKind.Parallel and not loop.iter_args and not _leaves_early(loop.body)


def _leaves_early(body: SeqStmts) -> bool:
    """Return whether a loop's body may end the loop or the function."""
    for stmt in body:
        if isinstance(stmt, (BreakStmt, ReturnStmt)):
            return True
        if isinstance(stmt, IfStmt) and any(_leaves_early(inner) for inner in bodies(stmt)):
            return True
        if isinstance(stmt, (ForStmt, WhileStmt)) and any(isinstance(s, ReturnStmt) for s in statements(stmt.body)):
            return True
    return False


def launches(program: Program, entry: Function) -> tuple[Launch, ...]:
    """Return what a function of a lowered program starts, in order."""
    found: list[Launch] = []
    for name, count, around, touched in _Walk(program, Footprints(program)).function(entry.name, {}, ()):
        after = tuple(i for i, other in enumerate(found) if _conflict(other.touched, touched))
        found.append(Launch(name, count, around, touched, after))
    return tuple(found)


_Started: TypeAlias = "tuple[str, str, tuple[str, ...], Touched]"


class _Walk:
    """The functions of a program, walked from one that is called."""

    def __init__(self, program: Program, footprints: Footprints) -> None:
        self.program, self.footprints = program, footprints

    def function(self, name: str, given: Mapping[Var, Owners], around: tuple[str, ...]) -> Iterator[_Started]:
        """Yield what a function starts; `given` says whose memory its parameters are for its caller."""
        yield from self._body(self.program[name].body, name, given, around)

    def _body(
        self, body: SeqStmts, name: str, given: Mapping[Var, Owners], around: tuple[str, ...]
    ) -> Iterator[_Started]:
        for stmt in body:
            if isinstance(stmt, ForStmt) and runs_side_by_side(stmt):
                yield f"parallel {stmt.loop_var.name_hint}", _range(stmt), around, self._touched(stmt.body, name, given)
                continue
            for call in (e for e in expressions(stmt) if isinstance(e, (Invoke, Submit))):
                yield from self._call(call, name, given, around)
            for inner in bodies(stmt):
                yield from self._body(inner, name, given, (*around, _heading(stmt)))

    def _call(
        self, call: Invoke | Submit, name: str, given: Mapping[Var, Owners], around: tuple[str, ...]
    ) -> Iterator[_Started]:
        """Yield a call as one launch, unless it is what it calls that starts something."""
        aliases, callee = self.footprints.aliases(name), self.program[call.op.name]
        passed = {p: _seen(aliases.owners(a), given) for p, a in zip(callee.params, call.args, strict=True)}
        count = call.core_num if isinstance(call, Submit) else None
        inside = list(self.function(callee.name, passed, around)) if count is None else []
        if inside:
            yield from inside
            return
        found = self.footprints[callee.name]
        touched = {
            access: NOBODY.union(*(passed[callee.params[p]] for p in positions))
            for access, positions in zip(Access, (found.reads, found.writes, found.adds), strict=True)
        }
        yield ("" if count is None else "grid ") + callee.name, "" if count is None else f"[{count}]", around, touched

    def _touched(self, body: SeqStmts, name: str, given: Mapping[Var, Owners]) -> Touched:
        """Return what a body does to memory from outside it."""
        aliases = self.footprints.aliases(name)
        own = {var for stmt in statements(body) for var in defined(stmt)}
        touched: dict[Access, Owners] = dict.fromkeys(Access, NOBODY)
        for access, owners in aliases.accesses(body):
            touched[access] |= _seen(frozenset(owner for owner in owners if owner not in own), given)
        return touched


def _seen(owners: Owners, given: Mapping[Var, Owners]) -> Owners:
    return NOBODY.union(*(given.get(owner, frozenset((owner,))) for owner in owners))


def _conflict(first: Touched, second: Touched) -> bool:
    """Return whether one has to have ended before the other begins: either writes what both touch."""
    everything = [NOBODY.union(*touched.values()) for touched in (first, second)]
    return bool(first[Access.WRITE] & everything[1] or second[Access.WRITE] & everything[0])


def _range(loop: ForStmt) -> str:
    return f"[{loop.start}:{loop.stop}:{loop.step}]"


def _heading(stmt: Stmt) -> str:
    if isinstance(stmt, ForStmt):
        return f"in for {stmt.loop_var.name_hint}"
    return "in if" if isinstance(stmt, IfStmt) else "in while"
