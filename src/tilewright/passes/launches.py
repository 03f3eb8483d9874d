"""Launches: what a program runs side by side, in which order, and what each of it reads and writes.

A grid runs a function once per block, a parallel loop its turns. Inside one of them everything is in order: the turns
of a loop within a turn, and the blocks that a block dispatches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from tilewright.core.access import Access
from tilewright.core.enums import ForKind
from tilewright.core.expr import Invoke, Submit, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import ForStmt, IfStmt, SeqStmts, Stmt
from tilewright.core.visitor import bodies, defined, expressions, statements
from tilewright.passes.aliases import NOBODY, Footprints, Owners
from tilewright.passes.exits import ends_early
from tilewright.passes.shares import shared_out
from tilewright.records import record
from tilewright.source import UNKNOWN, Span

Touched: TypeAlias = Mapping[Access, Owners]
Given: TypeAlias = Mapping[Var, Owners]


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
    after: tuple[int, ...] = ()
    """The numbers of those before it that it has to wait for."""
    span: Span = field(default=UNKNOWN, compare=False)
    """Where that is written."""

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
    return loop.kind is ForKind.Parallel and not hands_on(loop)


def hands_on(loop: ForStmt) -> bool:
    """Return whether a turn of a loop hands a value to the next, or ends the others."""
    return bool(loop.iter_args) or ends_early(loop)


def launches(program: Program, entry: Function) -> tuple[Launch, ...]:
    """Return what a function of a lowered program starts, in order."""
    found: list[Launch] = []
    for launch in _Walk(program).body(entry.body, entry.name, {}, ()):
        after = tuple(i for i, other in enumerate(found) if _conflict(other.touched, launch.touched))
        found.append(replace(launch, after=after))
    return tuple(found)


class _Walk:
    """The functions of a program, walked from one that is called."""

    def __init__(self, program: Program) -> None:
        self.program, self.footprints = program, Footprints(program)

    def body(self, body: SeqStmts, name: str, given: Given, around: tuple[str, ...]) -> Iterator[Launch]:
        """Yield what a body starts; `given` says whose memory its function's parameters are for the entry."""
        for stmt in body:
            if isinstance(stmt, ForStmt) and runs_side_by_side(stmt):
                turns = f"[{stmt.start}:{stmt.stop}:{stmt.step}]"
                tensor = shared_out(self.program, stmt, self.footprints.aliases(name).classes())
                split = f", by places of {tensor.name_hint}" if tensor is not None else ""
                what = f"parallel {stmt.loop_var.name_hint}"
                yield Launch(what, turns + split, around, self._touched(stmt, name, given), span=stmt.span)
                continue
            for call in (e for e in expressions(stmt) if isinstance(e, (Invoke, Submit))):
                yield from self._call(call, name, given, around)
            for inner in bodies(stmt):
                yield from self.body(inner, name, given, (*around, _heading(stmt)))

    def _call(self, call: Invoke | Submit, name: str, given: Given, around: tuple[str, ...]) -> Iterator[Launch]:
        """Yield a call as one launch, unless it is what it calls that starts something."""
        aliases, callee = self.footprints.aliases(name), self.program[call.op.name]
        passed = {p: _seen(aliases.owners(a), given) for p, a in zip(callee.params, call.args, strict=True)}
        count = call.core_num if isinstance(call, Submit) else None
        inside = list(self.body(callee.body, callee.name, passed, around)) if count is None else []
        found = self.footprints[callee.name]
        positions = zip(Access, (found.reads, found.writes, found.adds), strict=True)
        touched = {access: NOBODY.union(*(passed[callee.params[p]] for p in each)) for access, each in positions}
        grid = ("", "") if count is None else ("grid ", f"[{count}]")
        yield from inside or [Launch(grid[0] + callee.name, grid[1], around, touched, span=call.span)]

    def _touched(self, loop: ForStmt, name: str, given: Given) -> Touched:
        """Return what a loop does to memory from outside it."""
        own = {var for stmt in statements(loop.body) for var in defined(stmt)}
        touched: dict[Access, Owners] = dict.fromkeys(Access, NOBODY)
        for access, owners in self.footprints.aliases(name).accesses(loop.body):
            touched[access] |= _seen(owners - own, given)
        return touched


def _seen(owners: Owners, given: Given) -> Owners:
    return NOBODY.union(*(given.get(owner, frozenset((owner,))) for owner in owners))


def _conflict(first: Touched, second: Touched) -> bool:
    """Return whether one has to have ended before the other begins: either writes what both touch."""
    everything = [NOBODY.union(*touched.values()) for touched in (first, second)]
    return bool(first[Access.WRITE] & everything[1] or second[Access.WRITE] & everything[0])


def _heading(stmt: Stmt) -> str:
    if isinstance(stmt, ForStmt):
        return f"in for {stmt.loop_var.name_hint}"
    return "in if" if isinstance(stmt, IfStmt) else "in while"
