"""The memory plan: a place for every tile of a kernel, shared by tiles that are never alive together.

Each memory space is one arena. A tile lives from its definition to its last use; one that a loop reads lives as long
as the loop. Places are given out in order, the lowest that is free. Only what an op computes has a place: a value that
a loop carries or a branch yields is a name for one of several tiles, and where it is kept is the back end's choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.core.enums import FunctionType, MemorySpace
from tilewright.core.expr import Var
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, ForStmt, SeqStmts, WhileStmt
from tilewright.core.types import MemRef, TileType, Type
from tilewright.core.visitor import bodies, used, variables

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector a CPU has."""


@dataclass
class Lifetime:
    """A tile and the steps, first to last, during which its storage is taken."""

    var: Var
    first: int
    last: int


def run(program: Program) -> Program:
    """Place the tiles of every function that has any."""
    return program.with_functions([_planned(f) for f in program.function_list])


def _planned(function: Function) -> Function:
    if function.func_type is FunctionType.Inline:
        return function
    places = plan(function)
    if not places:
        return function
    return replace(function, body=_Placer(places).body(function.body))


def plan(function: Function) -> dict[Var, MemRef]:
    """Return where each tile of a function lives within its memory space."""
    places: dict[Var, MemRef] = {}
    arenas: dict[MemorySpace, list[tuple[Lifetime, MemRef]]] = {}
    for life in lifetimes(function):
        assert isinstance(life.var.type, TileType)
        arena = arenas.setdefault(life.var.type.memory, [])
        arena[:] = [(other, place) for other, place in arena if other.last >= life.first]
        place = _lowest_gap([place for _, place in arena], life.var.type.nbytes)
        places[life.var] = place
        arena.append((life, place))
    return places


def _lowest_gap(taken: Sequence[MemRef], size: int) -> MemRef:
    offset = 0
    for place in sorted(taken, key=lambda p: p.offset):
        if offset + size <= place.offset:
            break
        offset = max(offset, -(-(place.offset + place.size) // ALIGNMENT) * ALIGNMENT)
    return MemRef(offset, size)


def lifetimes(function: Function) -> list[Lifetime]:
    """Return the lifetime of each tile, in order of definition."""
    found: dict[Var, Lifetime] = {}
    steps = _Steps()
    steps.walk(function.body, found)
    return sorted(found.values(), key=lambda life: life.first)


class _Steps:
    """Counts statements, noting when tiles are defined and read."""

    def __init__(self) -> None:
        self.now = 0

    def walk(self, body: SeqStmts, found: dict[Var, Lifetime]) -> None:
        """Note every tile below a body; a loop keeps alive what it reads from outside."""
        for stmt in body:
            self.now += 1
            start = self.now
            self._touch(variables(used(stmt)), found)
            if isinstance(stmt, AssignStmt):
                self._define(stmt.var, found)
            for inner in bodies(stmt):
                self.walk(inner, found)
            self.now += 1
            if isinstance(stmt, (ForStmt, WhileStmt)):
                for life in found.values():
                    if life.first <= start <= life.last:
                        life.last = max(life.last, self.now)

    def _define(self, var: Var, found: dict[Var, Lifetime]) -> None:
        if isinstance(var.type, TileType):
            found[var] = Lifetime(var, self.now, self.now)

    def _touch(self, variables: Sequence[Var], found: dict[Var, Lifetime]) -> None:
        for var in variables:
            if var in found:
                found[var].last = max(found[var].last, self.now)


class _Placer(Rewriter):
    def __init__(self, places: dict[Var, MemRef]) -> None:
        super().__init__()
        self.places = places

    def define(self, var: Var, type_: Type | None = None) -> Var:
        """Bind a variable whose type says where it lives."""
        place = self.places.get(var)
        wanted = type_ if type_ is not None else var.type
        if place is None or not isinstance(wanted, TileType):
            return super().define(var, type_)
        return super().define(var, replace(wanted, memref=place))
