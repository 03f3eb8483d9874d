"""Sides: the two ways through a branch that the running program decides, and the values that both give."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.frontend.walk.bindings import Binding
from tilewright.pto.module import Op, Region, Value
from tilewright.pto.traced.scalars import as_leaf
from tilewright.pto.traced.tracer import Returned, Tracer
from tilewright.pto.traced.values import common_type, is_alike, is_same, leaves, rebuilt


@dataclass
class Side:
    """One way through a branch: its ops, what its variables stand for at the end, and what it returns."""

    region: Region
    names: dict[str, Binding]
    returned: Returned | None


def side(t: Tracer, body: Sequence[ast.stmt], before: dict[str, Binding]) -> Side:
    """Trace one side of a branch."""
    t.names = dict(before)
    t.region_depth += 1
    with t.writer.region() as region:
        t.execute(body)
    t.region_depth -= 1
    returned, t.returned = t.returned, None
    return Side(region, t.names, returned)


@dataclass
class Given:
    """The values that a branch gives, one of each side for each."""

    t: Tracer
    node: ast.If
    results: list[Value] = field(default_factory=list[Value])
    yields: tuple[list[Value], list[Value]] = field(default_factory=lambda: ([], []))

    def meets(self, lhs: object, rhs: object) -> bool:
        """Return whether what two sides have can be one value."""
        if not is_alike(lhs, rhs):
            return False
        pairs = zip(leaves(lhs), leaves(rhs), strict=True)
        return all(is_same(left, right) or common_type(left, right) is not None for left, right in pairs)

    def joined(self, lhs: object, rhs: object, name: str) -> object:
        """Return what stands, after the branch, for what its sides have."""
        pairs = zip(leaves(lhs), leaves(rhs), strict=True)
        parts = [left if is_same(left, right) else self._result(name, left, right) for left, right in pairs]
        return rebuilt(lhs, iter(parts))

    def _result(self, name: str, left: object, right: object) -> Value:
        type_ = common_type(left, right)
        assert type_ is not None
        for yielded, leaf in zip(self.yields, (left, right), strict=True):
            yielded.append(as_leaf(self.t, leaf, type_, self.node))
        result = Value("", type_, self.t.span(self.node))
        self.t.writer.call_it(result, name)
        self.results.append(result)
        return result

    def write(self, condition: Value, sides: tuple[Side, Side]) -> None:
        """Write the branch."""
        span = self.t.span(self.node)
        for each, yielded in zip(sides, self.yields, strict=True):
            if self.results:
                each.region.ops.append(Op("scf.yield", tuple(yielded), span=span))
        regions = [each.region for each in sides]
        if not self.results and not regions[1].ops:
            del regions[1]
        results = tuple(self.results)
        self.t.writer.emit(Op("scf.if", (condition,), results=results, regions=tuple(regions), span=span))
