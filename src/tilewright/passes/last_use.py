"""Last use: how often variables are read, where a call stands, and whether what it reads ends there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tilewright.core.expr import Call, Var
from tilewright.core.stmt import EMPTY, AssignStmt, ForStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.visitor import bodies, statements, used, variables


def reads(body: SeqStmts) -> Counter[Var]:
    """Return how often the statements of a body read each variable."""
    return Counter(var for stmt in statements(body) for var in variables(used(stmt)))


class LastUse:
    """Where the calls of a function stand, and what is made in the bodies around them."""

    def __init__(self, body: SeqStmts) -> None:
        self._bodies: dict[int, SeqStmts] = {}
        self._made: dict[int, frozenset[Var]] = {}
        self._collect(body, frozenset())

    def _collect(self, body: SeqStmts, carried: frozenset[Var]) -> None:
        self._made[id(body)] = carried.union(*map(_bound, body))
        for stmt in body:
            if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call):
                self._bodies.setdefault(id(stmt.value), body)
            is_loop = isinstance(stmt, (ForStmt, WhileStmt))
            own = frozenset(arg.var for arg in stmt.iter_args) if is_loop else frozenset[Var]()
            for inner in bodies(stmt):
                self._collect(inner, own)

    def body_of(self, call: Call) -> SeqStmts:
        """Return the body one of whose statements binds a call; an empty one where none does."""
        return self._bodies.get(id(call), EMPTY)

    def ends_at(self, call: Call, names: Iterable[Var]) -> bool:
        """Return whether the body of a call made what goes by some names, so that its last reader may take it over.

        A body that runs again makes it again, or is handed it by the turn before.
        """
        return self._made.get(id(self.body_of(call)), frozenset[Var]()).issuperset(names)


def _bound(stmt: Stmt) -> tuple[Var, ...]:
    return (stmt.var,) if isinstance(stmt, AssignStmt) else getattr(stmt, "return_vars", ())
