"""Writes: which of its tensors a function changes, whatever it declares.

A parameter without a direction may be written all the same, by the function itself or by one that it calls. Whoever
calls from outside has to know: their array may be read-only, or overlap another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.core.build import arguments
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Call, Expr, Invoke, MakeTuple, Submit, TupleGetItem, Var
from tilewright.core.program import Function, Program
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
from tilewright.core.types import TensorType
from tilewright.core.visitor import bodies, statements, used
from tilewright.records import record

Parameters = frozenset[int]
"""Positions of parameters of a function."""

NONE: Parameters = frozenset()


def actual_directions(program: Program, entry: Function) -> tuple[ParamDirection, ...]:
    """Return a function's directions as it declares them, with what it writes undeclared as `InOut`."""
    written = _effects(program)[entry.name].written
    return tuple(
        ParamDirection.InOut if declared is ParamDirection.In and position in written else declared
        for position, declared in enumerate(entry.param_directions)
    )


@record
class Effect:
    """What a function does to its parameters: which it may write, and which its results may share memory with."""

    written: Parameters = NONE
    returned: Parameters = NONE


def _effects(program: Program) -> Mapping[str, Effect]:
    """Return the effect of each function, found by going round until nothing changes."""
    known = {function.name: Effect() for function in program.function_list}
    while True:
        found = {function.name: _Aliases(function, known).effect() for function in program.function_list}
        if found == known:
            return found
        known = found


@dataclass(eq=False, repr=False)
class _Aliases:
    """The parameters that each variable of a function may share memory with, wherever it is bound."""

    function: Function
    known: Mapping[str, Effect]
    of: dict[Var, Parameters] = field(default_factory=dict[Var, Parameters])

    def effect(self) -> Effect:
        self.of = {p: frozenset((i,)) for i, p in enumerate(self.function.params) if isinstance(p.type, TensorType)}
        while self._bind_all():
            pass
        written, returned = NONE, NONE
        for stmt in statements(self.function.body):
            written = written.union(*map(self._written, used(stmt)))
            if isinstance(stmt, ReturnStmt):
                returned = returned.union(*map(self._value, stmt.values))
        return Effect(written, returned)

    def _bind_all(self) -> bool:
        """Let values flow once through every statement; return whether any variable learned something."""
        before = dict(self.of)
        self._body(self.function.body, (), ())
        return self.of != before

    def _body(self, body: SeqStmts, loop: Sequence[Var], branch: Sequence[Var]) -> None:
        for stmt in body:
            self._stmt(stmt, loop, branch)

    def _stmt(self, stmt: Stmt, loop: Sequence[Var], branch: Sequence[Var]) -> None:
        """Bind what a statement binds; a way out hands its values on to what `loop` carries or `branch` gives."""
        match stmt:
            case AssignStmt():
                self._bind([stmt.var], [stmt.value])
            case ForStmt() | WhileStmt():
                carried = [arg.var for arg in stmt.iter_args]
                self._bind(carried, [arg.init for arg in stmt.iter_args])
                self._body(stmt.body, carried, carried)
                self._bind(stmt.return_vars, carried)
            case IfStmt():
                for body in bodies(stmt):
                    self._body(body, loop, stmt.return_vars)
            case YieldStmt():
                self._bind(branch, stmt.values)
            case BreakStmt() | ContinueStmt():
                self._bind(loop, stmt.values)
            case _:
                for body in bodies(stmt):
                    self._body(body, loop, branch)

    def _bind(self, variables: Sequence[Var], values: Sequence[Expr]) -> None:
        for var, value in zip(variables, values, strict=False):
            self._learn(var, self._value(value))

    def _learn(self, var: Var, parameters: Parameters) -> None:
        if not parameters <= self.of.get(var, NONE):
            self.of[var] = self.of.get(var, NONE) | parameters

    def _value(self, expr: Expr) -> Parameters:
        """Return the parameters whose memory the value of an expression may be."""
        match expr:
            case Var():
                return self.of.get(expr, NONE)
            case Call() if expr.op.spec.alias is not None:
                return self._argument(expr, expr.op.spec.alias)
            case Invoke() | Submit():
                return self._given(expr, self.known[expr.op.name].returned)
            case MakeTuple():
                return NONE.union(*map(self._value, expr.elements))
            case TupleGetItem():
                return self._value(expr.value)
            case _:
                return NONE

    def _written(self, expr: Expr) -> Parameters:
        if isinstance(expr, (Invoke, Submit)):
            return self._given(expr, self.known[expr.op.name].written)
        if isinstance(expr, Call) and expr.op.spec.writes is not None and isinstance(expr.type, TensorType):
            return self._argument(expr, expr.op.spec.writes)
        return NONE

    def _argument(self, call: Call, name: str) -> Parameters:
        value = arguments(call)[name]
        return self._value(value) if isinstance(value, Expr) else NONE

    def _given(self, call: Invoke | Submit, positions: Parameters) -> Parameters:
        return NONE.union(*(self._value(call.args[position]) for position in positions))
