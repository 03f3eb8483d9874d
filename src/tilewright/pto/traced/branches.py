"""Branches: `if` statements, decided now where the condition is known and when the kernel runs where not."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.errors import ConditionError
from tilewright.frontend.walk.bindings import Binding, one_sided
from tilewright.pto.module import Op, Region, Value
from tilewright.pto.traced.liveness import assigned_in
from tilewright.pto.traced.scalars import as_leaf
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import common_type, describe, is_alike, is_same, leaves, rebuilt
from tilewright.pto.types import I1


def condition(t: Tracer, node: ast.expr) -> Value | bool:
    """Return a condition: a bool that is known, or an `i1`; ConditionError for other values of the module."""
    value = t.evaluate(node)
    if isinstance(value, Value) and value.type != I1:
        raise t.error(ConditionError, node, f"a condition is an i1, got {value.type}")
    return value if isinstance(value, Value) else bool(value)


def branch(t: Tracer, condition: Value, node: ast.If) -> None:
    """Trace both sides of an `if`, and hand on what is read after it."""
    before, later = dict(t.names), t.later
    then, otherwise = (_side(t, body, before) for body in (node.body, node.orelse))
    t.names = before
    join = _Join(t, node, then, otherwise)
    for name in assigned_in([*node.body, *node.orelse]):
        t.names.pop(name, None) if name not in later else join.add(name)
    join.emit(condition)


@dataclass
class _Side:
    """One way through a branch: its ops, and what its variables stand for at the end."""

    region: Region
    names: dict[str, Binding]


def _side(t: Tracer, body: Sequence[ast.stmt], before: dict[str, Binding]) -> _Side:
    t.names = dict(before)
    t.region_depth += 1
    with t.writer.region() as region:
        t.execute(body)
    t.region_depth -= 1
    return _Side(region, t.names)


@dataclass
class _Join:
    """The values that a branch hands on."""

    t: Tracer
    node: ast.If
    then: _Side
    otherwise: _Side
    results: list[Value] = field(default_factory=list[Value])
    yields: tuple[list[Value], list[Value]] = field(default_factory=lambda: ([], []))

    def add(self, name: str) -> None:
        """Let a variable stand, after the branch, for what both sides bind it to."""
        lhs, rhs = self.then.names.get(name), self.otherwise.names.get(name)
        if lhs is None or rhs is None:
            bound = lhs or rhs
            if bound is not None:
                self._spoil(name, bound, *one_sided(name, bound.span.line))
        elif lhs.problem or rhs.problem:
            self.t.names[name] = lhs if lhs.problem else rhs
        elif not self._meets(lhs.value, rhs.value):
            problem = (
                f"'{name}' is {describe(lhs.value)} on one path that leads here and {describe(rhs.value)} on another"
            )
            self._spoil(name, lhs, problem, "give each side a value of the same type, or another name")
        else:
            pairs = zip(leaves(lhs.value), leaves(rhs.value), strict=True)
            parts = [left if is_same(left, right) else self._result(name, left, right) for left, right in pairs]
            self.t.names[name] = Binding(rebuilt(lhs.value, iter(parts)), lhs.span)

    def _meets(self, lhs: object, rhs: object) -> bool:
        if not is_alike(lhs, rhs):
            return False
        pairs = zip(leaves(lhs), leaves(rhs), strict=True)
        return all(is_same(left, right) or common_type(left, right) is not None for left, right in pairs)

    def _spoil(self, name: str, binding: Binding, problem: str, help: str) -> None:
        self.t.names[name] = Binding(None, binding.span, problem, help)

    def _result(self, name: str, left: object, right: object) -> Value:
        type_ = common_type(left, right)
        assert type_ is not None
        for yielded, leaf in zip(self.yields, (left, right), strict=True):
            yielded.append(as_leaf(self.t, leaf, type_, self.node))
        result = Value("", type_, self.t.span(self.node))
        self.t.writer.call_it(result, name)
        self.results.append(result)
        return result

    def emit(self, condition: Value) -> None:
        """Write the branch."""
        sides = (self.then, self.otherwise)
        span = self.t.span(self.node)
        for side, yielded in zip(sides, self.yields, strict=True):
            if self.results:
                side.region.ops.append(Op("scf.yield", tuple(yielded), span=span))
        regions = [side.region for side in sides]
        if not self.results and not regions[1].ops:
            del regions[1]
        results = tuple(self.results)
        self.t.writer.emit(Op("scf.if", (condition,), results=results, regions=tuple(regions), span=span))
