"""Identity: variables that always stand for a value known under another name.

A store returns the tensor it wrote, so its result is that tensor. A function that returns one of its parameters gives
back the argument. A loop that hands on the very value it was given carries nothing. A branch both of whose sides yield
one value has not chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, Submit, Symbol, TupleGetItem, Var
from tilewright.core.program import Function
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import TensorType, TupleType
from tilewright.core.visitor import bodies, statements

Returned: TypeAlias = Mapping[str, tuple[int | None, ...]]
"""For each function, which parameter each of its results is, or None."""


def returned_parameters(functions: Sequence[Function]) -> Returned:
    """Return which results of each function are the very tensors it was given."""
    found: dict[str, tuple[int | None, ...]] = {}
    while True:
        before = dict(found)
        for function in functions:
            found[function.name] = _returned(function, found)
        if found == before:
            return found


def _returned(function: Function, known: Returned) -> tuple[int | None, ...]:
    returns = [s for s in statements(function.body) if isinstance(s, ReturnStmt)]
    if len(returns) != 1:
        return (None,) * len(function.return_types)
    identities = Identities(function.body, known)
    positions = {param: i for i, param in enumerate(function.params) if isinstance(param.type, TensorType)}
    roots = [identities.root(value) for value in returns[0].values]
    return tuple(positions.get(root) if isinstance(root, Var) else None for root in roots)


def written_tensor(value: Expr) -> Expr | None:
    """Return the tensor that a writing op returns, or None for other expressions."""
    if isinstance(value, Call) and value.op.spec.writes is not None and isinstance(value.type, TensorType):
        target = arguments(value)[value.op.spec.writes]
        return target if isinstance(target, Expr) else None
    return None


def viewed_tensor(value: Expr) -> Expr | None:
    """Return the tensor whose buffer a view or a write shares, or None for other expressions."""
    if isinstance(value, Call) and value.op.spec.alias is not None and isinstance(value.type, TensorType):
        target = arguments(value)[value.op.spec.alias]
        return target if isinstance(target, Expr) else None
    return None


class Identities:
    """What each variable of a body is always equal to, and which values its loops and branches need hand on."""

    def __init__(self, body: SeqStmts, returned: Returned | None = None) -> None:
        self.returned = returned or {}
        self.calls: dict[Var, Invoke | Submit] = {}
        self.same: dict[Var, Expr] = {}
        self.kept: dict[int, tuple[int, ...]] = {}
        self._body(body)

    def root(self, expr: Expr) -> Expr:
        """Return the oldest name of a value."""
        while isinstance(expr, Var) and expr in self.same:
            expr = self.same[expr]
        return expr

    def _body(self, body: SeqStmts) -> None:
        for stmt in body:
            if isinstance(stmt, AssignStmt):
                self._assigned(stmt)
                continue
            for inner in bodies(stmt):
                self._body(inner)
            if isinstance(stmt, (ForStmt, WhileStmt)):
                self._loop(stmt)
            elif isinstance(stmt, IfStmt):
                self._branch(stmt)

    def _assigned(self, stmt: AssignStmt) -> None:
        value = stmt.value
        target = written_tensor(value)
        if isinstance(value, (Invoke, Submit)):
            self.calls[stmt.var] = value
            target = self._argument(value, 0) if not isinstance(value.type, TupleType) else None
        elif isinstance(value, TupleGetItem) and isinstance(value.value, Var) and value.value in self.calls:
            target = self._argument(self.calls[value.value], value.index)
        if target is not None:
            self.same[stmt.var] = target

    def _argument(self, call: Invoke | Submit, position: int) -> Expr | None:
        """Return the argument that a call gives back as one of its results, if it does."""
        parameters = self.returned.get(call.op.name, ())
        parameter = parameters[position] if position < len(parameters) else None
        return None if parameter is None else call.args[parameter]

    def _loop(self, stmt: ForStmt | WhileStmt) -> None:
        """A carried value is its own start when every turn hands on what it got."""
        handed_on = [values for values in _exits(stmt.body, innermost=True) if values]
        constant: list[int] = []
        for position, arg in enumerate(stmt.iter_args):
            if not isinstance(arg.init, Absent) and all(self.root(v[position]) is arg.var for v in handed_on):
                self.same[arg.var] = arg.init
                self.same[stmt.return_vars[position]] = arg.init
                constant.append(position)
        self._keep(stmt, len(stmt.iter_args), constant)

    def _branch(self, stmt: IfStmt) -> None:
        yields = [b.stmts[-1].values for b in bodies(stmt) if b.stmts and isinstance(b.stmts[-1], YieldStmt)]
        if not stmt.return_vars or len(yields) < 2:
            return
        settled: list[int] = []
        for position, var in enumerate(stmt.return_vars):
            first, second = (self.root(values[position]) for values in yields)
            if isinstance(first, (Var, Const, Symbol)) and first == second:
                self.same[var] = first
                settled.append(position)
        self._keep(stmt, len(stmt.return_vars), settled)

    def _keep(self, stmt: Stmt, count: int, dropped: list[int]) -> None:
        if dropped:
            self.kept[id(stmt)] = tuple(i for i in range(count) if i not in dropped)


def _exits(body: SeqStmts, innermost: bool) -> Iterator[tuple[Expr, ...]]:
    """Yield the values handed on at each exit that belongs to the loop around `body`."""
    for stmt in body:
        if isinstance(stmt, (BreakStmt, ContinueStmt)) or (innermost and isinstance(stmt, YieldStmt)):
            yield stmt.values
        if not isinstance(stmt, (ForStmt, WhileStmt)):
            for inner in bodies(stmt):
                yield from _exits(inner, innermost=innermost and not isinstance(stmt, IfStmt))
