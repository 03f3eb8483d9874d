"""Inner reads: elements that nothing but kernels needs, read by those themselves, so that the host does not wait.

The host's reads, and the arithmetic with what they give, move into the loops that are launched, where nothing between
the two writes to what is read, the kernels included: their blocks run in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.backends.cuda.host.regions import is_kernel, is_launched, nest
from tilewright.backends.cuda.ttir.recipes import SCALARS
from tilewright.backends.cuda.ttir.values import computes
from tilewright.core.access import Access
from tilewright.core.expr import Call, Const, Expr, MakeTuple, Symbol, Var
from tilewright.core.op import Kind
from tilewright.core.program import Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import ScalarType
from tilewright.core.visitor import statements, subexpressions, used, variables
from tilewright.passes.aliases import Aliases, Footprints

READ = "tensor.read"


def read_inside(program: Program) -> Program:
    """Return a program whose kernels read the elements that they alone need."""
    footprints = Footprints(program)
    functions = [
        f if is_kernel(f) else replace(f, body=_Mover(program, footprints.aliases(f.name)).body(f.body))
        for f in program.function_list
    ]
    return program.with_functions(functions)


class _Mover(Rewriter):
    """Moves reads of one function, body by body."""

    def __init__(self, program: Program, aliases: Aliases) -> None:
        super().__init__()
        self.program, self.aliases = program, aliases

    def body(self, body: SeqStmts) -> SeqStmts:
        """Rewrite a body of the host's."""
        moved = self._movable(body.stmts) if any(isinstance(s, AssignStmt) and _reads(s.value) for s in body) else []
        if moved:
            gone = {stmt.var for stmt in moved}
            kept = (s for s in body if not (isinstance(s, AssignStmt) and s.var in gone))
            body = SeqStmts(tuple(self._reading(s, moved) if isinstance(s, ForStmt) else s for s in kept))
        return super().body(body)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Leave a loop as it is that is a kernel."""
        return (stmt,) if is_launched(self.program, stmt) else super().for_loop(stmt)

    def _movable(self, stmts: Sequence[Stmt]) -> list[AssignStmt]:
        """Return the reads that kernels can do, and what is computed of them for kernels, in order."""
        lasts: dict[Var, int] = {}
        for number in reversed(range(len(stmts))):
            stmt = stmts[number]
            if isinstance(stmt, AssignStmt) and _is_number(stmt.value):
                last = self._last(stmt.var, stmts, number + 1, lasts)
                if last is not None and self._is_kept(stmt.value, stmts[number + 1 : last + 1]):
                    lasts[stmt.var] = last
        found: dict[Var, AssignStmt] = {}
        for stmt in stmts:
            if isinstance(stmt, AssignStmt) and stmt.var in lasts:
                if _reads(stmt.value) or any(var in found for var in variables((stmt.value,))):
                    found[stmt.var] = stmt
        return [*found.values()]

    def _last(self, var: Var, stmts: Sequence[Stmt], start: int, lasts: Mapping[Var, int]) -> int | None:
        """Return which statement is the last kernel that needs a variable, None where something else does, too."""
        found: list[int] = []
        for number in range(start, len(stmts)):
            stmt = stmts[number]
            if var not in _needed(stmt):
                continue
            if isinstance(stmt, ForStmt) and self._takes(stmt, var):
                found.append(number)
            elif isinstance(stmt, AssignStmt) and stmt.var in lasts:
                found.append(lasts[stmt.var])
            else:
                return None
        return max(found, default=None)

    def _takes(self, loop: ForStmt, var: Var) -> bool:
        """Return whether a loop is a kernel, of whose grid a variable is no part."""
        if not is_launched(self.program, loop):
            return False
        return not any(var in variables(used(each)) for each in nest(self.program, loop))

    def _is_kept(self, value: Expr, between: Sequence[Stmt]) -> bool:
        """Return whether statements leave the tensors of a value as they are."""
        read = frozenset(owner for each in subexpressions(value) for owner in self.aliases.owners(each))
        done = self.aliases.accesses(SeqStmts(tuple(between)))
        return not any(owners & read for access, owners in done if access is not Access.READ)

    def _reading(self, loop: ForStmt, moved: Sequence[AssignStmt]) -> ForStmt:
        """Return a loop that begins with those statements that it needs."""
        needed, taken = _needed(loop), list[Stmt]()
        for stmt in reversed(moved):
            if stmt.var in needed:
                taken.insert(0, stmt)
                needed |= _needed(stmt)
        if not taken:
            return loop
        *around, inner = nest(self.program, loop)
        found = replace(inner, body=SeqStmts((*taken, *inner.body)))
        for each in reversed(around):
            found = replace(each, body=SeqStmts((found,)))
        return found


def _needed(stmt: Stmt) -> set[Var]:
    """Return the variables that a statement uses, with its bodies."""
    return {var for each in statements(SeqStmts((stmt,))) for var in variables(used(each))}


def _reads(value: Expr) -> bool:
    return isinstance(value, Call) and value.op.name == READ


def _is_number(value: Expr) -> bool:
    """Return whether a kernel can compute a value, of numbers and elements."""
    return isinstance(value.type, ScalarType) and all(map(_is_part, subexpressions(value)))


def _is_part(expr: Expr) -> bool:
    if not isinstance(expr, Call):
        return isinstance(expr, (Const, MakeTuple, Symbol, Var))
    if not isinstance(expr.type, ScalarType) or not computes(expr.type.dtype):
        return False
    return _reads(expr) or (expr.op.kind is Kind.SCALAR and expr.op.spec.name in SCALARS)
