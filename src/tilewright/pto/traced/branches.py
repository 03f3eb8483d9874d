"""Branches: `if` statements, decided now where the condition is known and when the kernel runs where not."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tilewright.errors import ConditionError
from tilewright.frontend.walk.bindings import Binding, one_sided
from tilewright.pto.module import Value
from tilewright.pto.traced.early_returns import ends_with, leave
from tilewright.pto.traced.liveness import assigned_in
from tilewright.pto.traced.sides import Given, Side, side
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe
from tilewright.pto.types import I1


def condition(t: Tracer, node: ast.expr) -> Value | bool:
    """Return a condition: a bool that is known, or an `i1`; ConditionError for other values of the module."""
    value = t.evaluate(node)
    if isinstance(value, Value) and value.type != I1:
        raise t.error(ConditionError, node, f"a condition is an i1, got {value.type}")
    return value if isinstance(value, Value) else bool(value)


def branch(t: Tracer, condition: Value, node: ast.If) -> None:
    """Trace both sides of an `if`, and hand on what is read after it."""
    if ends_with(t, node):
        leave(t, condition, node)
        return
    before, later = dict(t.names), t.later
    then, otherwise = (side(t, body, before) for body in (node.body, node.orelse))
    t.names = before
    given = Given(t, node)
    join = _Join(t, then, otherwise, given)
    for name in assigned_in([*node.body, *node.orelse]):
        t.names.pop(name, None) if name not in later else join.add(name)
    given.write(condition, (then, otherwise))


@dataclass
class _Join:
    """The values that a branch hands on."""

    t: Tracer
    then: Side
    otherwise: Side
    given: Given

    def add(self, name: str) -> None:
        """Let a variable stand, after the branch, for what both sides bind it to."""
        lhs, rhs = self.then.names.get(name), self.otherwise.names.get(name)
        if lhs is None or rhs is None:
            bound = lhs or rhs
            if bound is not None:
                self._spoil(name, bound, *one_sided(name, bound.span.line))
        elif lhs.problem or rhs.problem:
            self.t.names[name] = lhs if lhs.problem else rhs
        elif not self.given.meets(lhs.value, rhs.value):
            problem = (
                f"'{name}' is {describe(lhs.value)} on one path that leads here and {describe(rhs.value)} on another"
            )
            self._spoil(name, lhs, problem, "give each side a value of the same type, or another name")
        else:
            self.t.names[name] = Binding(self.given.joined(lhs.value, rhs.value, name), lhs.span)

    def _spoil(self, name: str, binding: Binding, problem: str, help: str) -> None:
        self.t.names[name] = Binding(None, binding.span, problem, help)
