"""Identity: variables that always stand for a value known under another name.

A store returns the tensor it wrote, so its result is that tensor. A function that returns one of its parameters gives
back the argument. A loop that hands on the very value it was given carries nothing. A branch both of whose sides yield
one value has not chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Const, Expr, Invoke, Submit, Symbol, TupleGetItem, Var
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.types import TensorType, TupleType
from tilewright.core.visitor import statements
from tilewright.passes.flow import Flow

Returned: TypeAlias = Mapping[str, tuple[int | None, ...]]
"""For each function, which parameter each of its results is, or None."""


def returned_parameters(functions: Sequence[Function]) -> Returned:
    """Return which results of each function are the very tensors it was given."""
    known = identities(functions)
    return {function.name: _returned(function, known[function.name]) for function in functions}


def identities(functions: Sequence[Function]) -> Mapping[str, Identities]:
    """Return what the variables of each function are always equal to, knowing what the functions it calls give back."""
    found: dict[str, Identities] = {}
    returned: dict[str, tuple[int | None, ...]] = {}
    pending = [*functions]
    while pending:
        function = pending.pop(0)
        known = found[function.name] = Identities(function.body, returned)
        gives = _returned(function, known)
        if gives != returned.get(function.name, (None,) * len(gives)):  # those who were told otherwise look again
            pending += [f for f in functions if f.name in found and f not in pending and found[f.name].asks(function)]
        returned[function.name] = gives
    return found


def _returned(function: Function, identities: Identities) -> tuple[int | None, ...]:
    returns = [s for s in statements(function.body) if isinstance(s, ReturnStmt)]
    if not returns:
        return (None,) * len(function.return_types)
    positions: dict[Expr, int] = {p: i for i, p in enumerate(function.params) if isinstance(p.type, TensorType)}
    given = [[positions.get(identities.root(value)) for value in stmt.values] for stmt in returns]
    return tuple(each[0] if len(set(each)) == 1 else None for each in zip(*given, strict=True))


def written_tensor(value: Expr) -> Expr | None:
    """Return the tensor that a writing op returns, or None for other expressions."""
    if isinstance(value, Call) and value.op.spec.writes is not None and isinstance(value.type, TensorType):
        target = arguments(value)[value.op.spec.writes]
        return target if isinstance(target, Expr) else None
    return None


class Identities(Flow):
    """What each variable of a body is always equal to, and which values its loops and branches need hand on."""

    def __init__(self, body: SeqStmts, returned: Returned | None = None) -> None:
        self.returned = returned or {}
        assigned = (stmt for stmt in statements(body) if isinstance(stmt, AssignStmt))
        self.calls = {stmt.var: stmt.value for stmt in assigned if isinstance(stmt.value, (Invoke, Submit))}
        super().__init__(body)
        sole = {var: next(iter(values)) for var, values in self.known.items() if len(values) == 1}
        self.same = {v: root for v, root in sole.items() if root is not v and isinstance(root, (Var, Const, Symbol))}
        carrying = (stmt for stmt in statements(body) if isinstance(stmt, (ForStmt, WhileStmt, IfStmt)))
        self.kept = {id(stmt): kept for stmt in carrying if (kept := self._kept(stmt)) is not None}

    def asks(self, function: Function) -> bool:
        """Return whether what a function gives back matters here."""
        return any(call.op.name == function.name for call in self.calls.values())

    def root(self, expr: Expr) -> Expr:
        """Return the oldest name of a value."""
        return self.same.get(expr, expr) if isinstance(expr, Var) else expr

    def handed_on(self, expr: Expr) -> Sequence[Expr] | None:
        """Return the tensor a write gives back, or the argument that a call does."""
        given = written_tensor(expr)
        if isinstance(expr, (Invoke, Submit)) and not isinstance(expr.type, TupleType):
            given = self._argument(expr, 0)
        elif isinstance(expr, TupleGetItem) and isinstance(expr.value, Var) and expr.value in self.calls:
            given = self._argument(self.calls[expr.value], expr.index)
        return None if given is None else (given,)

    def _argument(self, call: Invoke | Submit, position: int) -> Expr | None:
        """Return the argument that a call gives back as one of its results, if it does."""
        parameters = self.returned.get(call.op.name, ())
        parameter = parameters[position] if position < len(parameters) else None
        return None if parameter is None else call.args[parameter]

    def _kept(self, stmt: Stmt) -> tuple[int, ...] | None:
        """Return the positions at which a loop or branch hands on what has no other name, None where all have none."""
        results = stmt.return_vars if isinstance(stmt, (ForStmt, WhileStmt, IfStmt)) else ()
        kept = tuple(i for i, var in enumerate(results) if var not in self.same)
        return None if len(kept) == len(results) else kept
