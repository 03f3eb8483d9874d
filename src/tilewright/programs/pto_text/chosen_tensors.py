"""Chosen tensors: statements about a tensor that the running program chooses, written once for each that it may be.

PTO's pointers lie in buffers that are known, so what is handed on is a number, and whatever uses the tensor stands in
a branch for each buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from tilewright import dtypes as dt
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.stmt import AssignStmt, EvalStmt, Stmt
from tilewright.core.types import TensorType, TupleType
from tilewright.core.visitor import evaluated, variables
from tilewright.programs.pto_text.exits import Exits
from tilewright.programs.pto_text.flow import fresh, given_by, with_numbers
from tilewright.programs.pto_text.handover import Frame, numbers_of, types_of
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Choice, Tensor, Value


def _is_view(expr: Expr) -> bool:
    """Return whether an expression looks at a tensor another way, and does nothing to it."""
    spec = expr.op.spec if isinstance(expr, Call) else None
    return spec is not None and isinstance(expr.type, TensorType) and spec.alias is not None and spec.writes is None


class ChosenTensors(Exits):
    """What statements are written with that are about such tensors."""

    def chooses(self, stmt: Stmt) -> bool:
        """Write a statement about a tensor that is chosen; return False for any other one."""
        expr = evaluated(stmt)
        if not isinstance(stmt, AssignStmt | EvalStmt) or expr is None or isinstance(expr, Var):
            return False
        var = next((each for each in variables([expr]) if isinstance(self.values.get(each), Choice)), None)
        if var is None:
            return False
        choice = self.values[var]
        assert isinstance(choice, Choice)
        if isinstance(expr, Call) and expr.op.name == "tensor.dim":
            self._about(stmt, var, choice.options[0])  # all of them are as large
        elif isinstance(stmt, AssignStmt) and _is_view(expr):
            self.values[stmt.var] = self._view(stmt, var, choice)
        else:
            with self.again():
                self._each(stmt, var, choice)
        self.values[var] = choice
        return True

    def _view(self, stmt: AssignStmt, var: Var, choice: Choice) -> Value:
        """Return a view of a tensor that is chosen: that of each, which cost nothing, chosen alike."""
        made: list[Tensor] = []
        for option in choice.options:
            self._about(stmt, var, option)
            view = self.values[stmt.var]
            assert isinstance(view, Tensor)
            made.append(view)
        return replace(choice, options=(*made,))

    def _each(self, stmt: AssignStmt | EvalStmt, var: Var, choice: Choice) -> None:
        places = self._places(stmt)
        numbers = numbers_of(places, places)
        results = fresh(self.w, numbers)
        first, *others = choice.options
        rest = others[0] if len(others) == 1 else replace(choice, options=(*others,), numbers=choice.numbers[1:])
        is_first = computed(self.w, "eq", [choice.which, choice.numbers[0]], dt.BOOL)
        types = f" -> ({types_of(numbers)})" if numbers else ""
        with self.w.branch(f"{given_by(results)}scf.if {is_first.name}{types}") as otherwise:
            self._where(stmt, var, first, places)
            otherwise()
            self._where(stmt, var, rest, places)
        if isinstance(stmt, AssignStmt):
            made = with_numbers(places, results)
            given: Any = tuple(made) if isinstance(stmt.var.type, TupleType) else made[0]
            self.values[stmt.var] = given

    def _places(self, stmt: AssignStmt | EvalStmt) -> list[Value]:
        """Return what stands for what a statement gives."""
        if isinstance(stmt, EvalStmt):
            return []
        type_, hint, owners = stmt.var.type, stmt.var.name_hint, self.aliases.owners(stmt.var)
        if isinstance(type_, TupleType):
            return [self._place(Var(hint, each), owners=owners) for each in type_.elements]
        return [self._place(stmt.var, owners=owners)]

    def _where(self, stmt: AssignStmt | EvalStmt, var: Var, option: Value, places: Sequence[Value]) -> None:
        self.frames.append(Frame((*places,)))
        self._about(stmt, var, option)
        made: Any = self.values[stmt.var] if isinstance(stmt, AssignStmt) else ()
        self.hand_on(cast("tuple[Value, ...]", made) if isinstance(made, tuple) else (made,))
        self.frames.pop()

    def _about(self, stmt: AssignStmt | EvalStmt, var: Var, option: Value) -> None:
        """Write a statement where a tensor is one of those that it may be."""
        self.values[var] = option
        if not self.chooses(stmt):
            self.stmt(stmt)
