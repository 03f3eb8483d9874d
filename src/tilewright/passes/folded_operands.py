"""Folded operands: tiles whose columns are folded, computed as they are and never in memory.

`pl.sum(d * d, axis=0)` reads each element of the product once, and whoever computes it may as well add it up. Loads,
gathered rows and what is made of them element by element for such folds alone are left to the folds. What is made with
little effort is computed again for others who work element by element: less than to write and read it once more.
"""

from __future__ import annotations

from collections.abc import Collection

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Var
from tilewright.core.op import Kind
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements
from tilewright.passes.left_tiles import Statements, all_bodies, is_elementwise, is_load, tiles_of

FEWEST = 16
"""Columns that a tile has at least: of fewer, many rows are folded at once where they lie in memory."""


def folded_operands(function: Function) -> frozenset[Var]:
    """Return the tiles of a function that are left to folds of columns, with what those are made of."""
    if not any(folds_columns(stmt) for stmt in statements(function.body)):
        return frozenset()
    return frozenset(var for body in all_bodies(function.body) for var in _Folds(body).computed())


def folds_columns(stmt: Stmt) -> Call | None:
    """Return a fold of columns from the first row down."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(call, Call) or call.op.kind is not Kind.TILE or call.op.spec.family != "reduction":
        return None
    scratch = arguments(call).get("tmp_tile")
    is_plain = scratch is None or isinstance(scratch, Absent)
    return call if call.op.spec.name.startswith("col") and is_plain else None


def takes_rows(call: Call) -> bool:
    """Return whether a call takes whole rows that indices name."""
    given = arguments(call) if call.op.name == "tile.take" else {}
    return given.get("axis") == 0 and (given["mask"] is None or isinstance(given["mask"], Absent))


class _Folds(Statements):
    """Some statements in order: what the folds of columns among them compute."""

    def computed(self) -> set[Var]:
        """Return what is left to folds, or to them and to others who compute it again."""
        found: set[Var] = set()
        for stmt in self.stmts:
            call = folds_columns(stmt)
            for operand in tiles_of(call.args[:1]) if call is not None else ():
                chain = self._chain(operand)
                found |= chain if chain and self._is_quiet(chain) else set()
        return found

    def _chain(self, folded: Var) -> set[Var]:
        """Return what a fold computes as it reads a tile, which is part of it; nothing where it reads memory."""
        made = self.made.get(folded)
        if made is None or not is_elementwise(made) or not _is_wide(folded):
            return set()
        if not (self._is_folded_alone(folded) or self._is_repeated(folded)):
            return set()
        chain, pending = {folded}, [folded]
        while pending:
            var = pending.pop()
            for source in tiles_of(self.made[var].args):
                if source not in chain and self._joins(source, folded):
                    chain.add(source)
                    pending.append(source)
        return chain

    def _joins(self, source: Var, folded: Var) -> bool:
        """Return whether what a chain reads is computed with it."""
        made = self.made.get(source)
        if made is None or _shape(source) != _shape(folded):
            return False
        if is_elementwise(made) and self._is_repeated(source):
            return True
        is_read = is_elementwise(made) or is_load(made) or takes_rows(made)
        return is_read and self._is_folded_alone(source)

    def _is_folded_alone(self, var: Var) -> bool:
        """Return whether all that becomes of a tile is one fold of columns."""
        readers = set(self.readers.get(var, []))
        if len(readers) != 1:
            return False
        stmt = self.stmts[readers.pop()]
        made = stmt.value if isinstance(stmt, AssignStmt) else None
        if not isinstance(stmt, AssignStmt) or not isinstance(made, Call) or folds_columns(stmt) is not None:
            return folds_columns(stmt) is not None
        return is_elementwise(made) and self._is_folded_alone(stmt.var)

    def _is_repeated(self, var: Var) -> bool:
        """Return whether a tile costs little, and all who read it can compute it."""
        made = self.made[var]
        return made.op.spec.ulp == 0 and all(map(self._can_compute, self.readers.get(var, [])))

    def _can_compute(self, number: int) -> bool:
        stmt = self.stmts[number]
        made = stmt.value if isinstance(stmt, AssignStmt) else None
        return folds_columns(stmt) is not None or isinstance(made, Call) and is_elementwise(made)

    def _is_quiet(self, chain: Collection[Var]) -> bool:
        """Return whether nothing is changed while a chain waits, tiles included."""
        reach = [number for var in chain for number in (self.at[var], *self.readers.get(var, []))]
        calls = (
            self.made.get(s.var) if isinstance(s, AssignStmt) else None for s in self.stmts[min(reach) : max(reach)]
        )
        return self.only_compute_during(chain) and all(call is None or call.op.spec.writes is None for call in calls)


def _shape(var: Var) -> tuple[int, ...]:
    return var.type.shape if isinstance(var.type, TileType) else ()


def _is_wide(var: Var) -> bool:
    return _shape(var)[-1] >= FEWEST
