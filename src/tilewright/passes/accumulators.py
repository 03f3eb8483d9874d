"""Accumulators: tiles that a loop computes anew from what it carried, whose valid part must not shrink on the way.

`acc = loaded + acc` is valid where `loaded` is. Where the last turn loads less, what the turns before had summed
beyond that would be dropped without a word. A tile that is merely replaced each turn may be of any extent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.expr import Expr, Var
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, ContinueStmt, ForStmt, IfStmt, SeqStmts, Stmt, WhileStmt, YieldStmt
from tilewright.core.types import TileType
from tilewright.core.visitor import bodies, statements, variables

SHRINKS = (
    "the valid part of `{name}` shrinks from turn to turn: what it held beyond that would be lost\n"
    "pl.load(..., pad=0.0) reads whole tiles, so that all of them are equally valid"
)

Sources = Mapping[Var, Sequence[Var]]


def accumulators(function: Function) -> dict[Var, Expr]:
    """Return the tiles that loops carry and compute from themselves, and what computes them."""
    loops = [s for s in statements(function.body) if isinstance(s, (ForStmt, WhileStmt)) and s.iter_args]
    if not any(isinstance(arg.var.type, TileType) for loop in loops for arg in loop.iter_args):
        return {}
    sources = _sources(function.body)
    made_by = {s.var: s.value for s in statements(function.body) if isinstance(s, AssignStmt)}
    found: dict[Var, Expr] = {}
    for loop in loops:
        for position, arg in enumerate(loop.iter_args):
            for value in _handed_on(loop.body, position) if isinstance(arg.var.type, TileType) else ():
                if isinstance(value, Var) and value is not arg.var and _reaches(arg.var, value, sources):
                    found[arg.var] = made_by.get(value, value)
    return found


def _handed_on(body: SeqStmts, position: int) -> list[Expr]:
    """Return what a loop's body may carry to the next turn at a position."""
    found: list[Expr] = []
    for stmt in body:
        if isinstance(stmt, (YieldStmt, ContinueStmt)):
            found += stmt.values[position : position + 1]
        elif isinstance(stmt, IfStmt):
            found += [s.values[position] for inner in bodies(stmt) for s in _continues(inner) if s.values]
    return found


def _continues(body: SeqStmts) -> list[ContinueStmt]:
    """Return the statements of a branch that go on with the next turn of the loop around it."""
    found = [stmt for stmt in body if isinstance(stmt, ContinueStmt)]
    for stmt in body:
        if isinstance(stmt, IfStmt):
            found += [s for inner in bodies(stmt) for s in _continues(inner)]
    return found


def _sources(body: SeqStmts) -> dict[Var, list[Var]]:
    """Return the tiles that each tile is made from."""
    sources: dict[Var, list[Var]] = {}

    def note(targets: Sequence[Var], values: Sequence[Expr]) -> None:
        for var, value in zip(targets, values, strict=False):
            sources.setdefault(var, []).extend(v for v in variables([value]) if isinstance(v.type, TileType))

    def walk(stmt: Stmt, targets: Sequence[Var]) -> None:
        if isinstance(stmt, AssignStmt):
            note([stmt.var], [stmt.value])
        elif isinstance(stmt, (ForStmt, WhileStmt)):
            targets = [arg.var for arg in stmt.iter_args]
            note(targets, [arg.init for arg in stmt.iter_args])
            note(stmt.return_vars, targets)
        elif isinstance(stmt, IfStmt):
            targets = stmt.return_vars
        elif isinstance(stmt, YieldStmt):
            note(targets, stmt.values)
        for inner in bodies(stmt):
            for each in inner:
                walk(each, targets)

    for stmt in body:
        walk(stmt, ())
    return sources


def _reaches(start: Var, end: Var, sources: Sources) -> bool:
    """Return whether a tile is made from another."""
    waiting, seen = [end], {end}
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source is start:
                return True
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return False
