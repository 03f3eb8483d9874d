"""Left tiles: tiles that nobody computes where they are written, which is left to whoever reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Expr, Var
from tilewright.core.op import Effect, Kind
from tilewright.core.stmt import AssignStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import bodies, used, variables


def all_bodies(body: SeqStmts) -> Iterator[SeqStmts]:
    """Return statements, and all that stand inside of them."""
    yield body
    for stmt in body:
        for inner in bodies(stmt):
            yield from all_bodies(inner)


class Statements:
    """Some statements in order: what they make, and who reads it."""

    def __init__(self, body: SeqStmts) -> None:
        self.stmts = list(body)
        self.made: dict[Var, Call] = {}
        self.at: dict[Var, int] = {}
        self.readers: dict[Var, list[int]] = {}
        for number, stmt in enumerate(self.stmts):
            if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call):
                self.made[stmt.var], self.at[stmt.var] = stmt.value, number
            for var in _read(stmt):
                self.readers.setdefault(var, []).append(number)

    def only_compute_during(self, chain: Collection[Var]) -> bool:
        """Return whether nothing is changed from where tiles are made to where the last of them is read."""
        reach = [number for var in chain for number in (self.at[var], *self.readers.get(var, []))]
        return all(_only_computes(stmt) for stmt in self.stmts[min(reach) : max(reach)])


def _read(stmt: Stmt) -> list[Var]:
    """Return the variables that a statement reads, and those inside of it."""
    inner = [var for body in bodies(stmt) for each in body for var in _read(each)]
    return [*variables(used(stmt)), *inner]


def tiles_of(args: Sequence[Expr]) -> list[Var]:
    """Return the arguments that are tiles with names."""
    return [arg for arg in args if isinstance(arg, Var) and isinstance(arg.type, TileType)]


def is_load(call: Call) -> bool:
    """Return whether a call loads a matrix as it lies."""
    if call.op.name != "tile.load" or not isinstance(call.type, TileType) or len(call.type.shape) != 2:
        return False
    given, source = arguments(call), call.args[0].type
    plain = all(given.get(name) is None or isinstance(given.get(name), Absent) for name in ("mask", "pad"))
    return plain and isinstance(source, TensorType) and not source.layout.is_permuted


def is_elementwise(call: Call) -> bool:
    """Return whether a call makes each element from those at its place, or from the same number."""
    if call.op.kind is not Kind.TILE or not isinstance(call.type, TileType) or len(call.type.shape) != 2:
        return False
    return call.op.spec.family == "elementwise" or call.op.spec.name in ("cast", "full")


def _only_computes(stmt: Stmt) -> bool:
    """Return whether a statement changes no tensor."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    return isinstance(call, Call) and call.op.spec.effect in (Effect.PURE, Effect.READ)
