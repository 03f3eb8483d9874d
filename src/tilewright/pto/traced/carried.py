"""Carried variables: what a loop hands from one round to the next.

A variable that was bound before a loop, is bound again inside, and is read in the loop or after it, is carried. A
Python number has no type until it is carried: the body is traced with the number itself first, and again with a value
of the type that it turned into.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.errors import ReassignmentError
from tilewright.frontend.walk.bindings import Binding
from tilewright.pto.module import Op, Region, Value
from tilewright.pto.traced.liveness import assigned_in
from tilewright.pto.traced.scalars import as_leaf
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import common_type, describe, is_alike, is_runtime, is_same, leaves, rebuilt
from tilewright.pto.traced.writer import Mark
from tilewright.pto.types import INDEX, Scalar, Type


@dataclass
class Carried:
    """The variables that one loop carries, while its body is traced."""

    t: Tracer
    node: ast.For | ast.While
    later: frozenset[str]
    before: Mapping[str, Binding]
    assigned: Sequence[str]
    mark: Mark
    """The state of the writer before the loop, to start again from."""
    starts: dict[str, object]
    """What each variable is before the first round."""
    after: Mapping[str, Binding] = field(default_factory=dict[str, Binding])
    """What the variables stand for at the end of a round."""
    arguments: tuple[Value, ...] = ()
    inits: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()

    @classmethod
    def of(cls, t: Tracer, node: ast.For | ast.While, inside: frozenset[str], own: str = "") -> Carried:
        """Return the variables of a loop that reads `inside`; `own` is its own, which starts anew each round."""
        assigned = [name for name in assigned_in(node.body) if name != own]
        read = t.later | inside
        bound = ((name, t.names[name]) for name in assigned if name in t.names and name in read)
        starts = {name: binding.value for name, binding in bound if not binding.problem}
        return cls(t, node, t.later, dict(t.names), assigned, t.writer.mark(), starts)

    def enter(self, names: Mapping[str, Binding]) -> tuple[Value, ...]:
        """Let each variable, among `names`, stand for an argument of a region; return the arguments."""
        self.t.names = dict(names)
        arguments: list[Value] = []
        for name, start in self.starts.items():
            parts = [self._argument(name, leaf, arguments) for leaf in leaves(start)]
            self.t.names[name] = Binding(rebuilt(start, iter(parts)), self.before[name].span)
        self.arguments = tuple(arguments)
        return self.arguments

    def _argument(self, name: str, leaf: object, arguments: list[Value]) -> object:
        if not isinstance(leaf, Value):
            return leaf
        argument = Value(self.t.writer.fresh(name), leaf.type, self.before[name].span)
        arguments.append(argument)
        return argument

    def trace(self, inside: frozenset[str]) -> None:
        """Trace one round, after which the next reads `inside`."""
        t = self.t
        t.region_depth += 1
        t.execute(self.node.body, inside)
        t.region_depth -= 1
        self.after = t.names

    def is_settled(self) -> bool:
        """Return whether every number that the body changes has a type; where not, start again with one."""
        types = {name: found for name in self.starts if any(found := self._found_types(name))}
        if types:
            self.abandon()
            self.starts |= {name: self._typed(self.starts[name], found) for name, found in types.items()}
            self.mark = self.t.writer.mark()  # what the variables start from now stays
        return not types

    def abandon(self) -> None:
        """Forget what was traced of the loop."""
        self.t.writer.reset(self.mark)
        self.t.names = dict(self.before)

    def _found_types(self, name: str) -> list[Type | None]:
        """Return the type of each number of a variable that the body changes, None for what stays as it is."""
        start, end = self.starts[name], self.after[name]
        if end.problem or not is_alike(start, end.value):
            return []
        pairs = zip(leaves(start), leaves(end.value), strict=True)
        return [None if isinstance(a, Value) or is_same(a, b) else common_type(a, b) for a, b in pairs]

    def _typed(self, start: object, types: Sequence[Type | None]) -> object:
        pairs = zip(leaves(start), types, strict=True)
        return rebuilt(
            start, iter([leaf if ty is None else as_leaf(self.t, leaf, ty, self.node) for leaf, ty in pairs])
        )

    def finish(self, regions: Sequence[Region], tested: Sequence[Value] = (), test: Value | None = None) -> list[int]:
        """Hand the variables on, the last region yielding them; return the places of the arguments that stay.

        `tested` are the arguments of the region that holds the condition, where that is another one, and `test` is it.
        """
        places = self._places()
        kept = self._kept(places, regions, tested, test)
        self.t.names = dict(self.before)
        for name in self.assigned:
            self._spoil(name)
        yields = [value for name in kept for value in self._hand_on(name)]
        if yields:
            regions[-1].ops.append(Op("scf.yield", tuple(yields), span=self.t.span(self.node)))
        return [place for name in kept for place in places[name]]

    def _places(self) -> dict[str, list[int]]:
        """Return which arguments belong to each variable."""
        places, count = dict[str, list[int]](), 0
        for name, start in self.starts.items():
            number = sum(isinstance(leaf, Value) for leaf in leaves(start))
            places[name] = list(range(count, count + number))
            count += number
        return places

    def _kept(
        self, places: Mapping[str, list[int]], regions: Sequence[Region], tested: Sequence[Value], test: Value | None
    ) -> list[str]:
        """Return the variables that somebody needs: the ops inside, the rest of the function, or one that is kept."""
        used = {id(value) for region in regions for op in region.ops for inner in op.walk() for value in inner.uses}
        used.add(id(test))
        owners = {
            id(each[place]): name
            for each in (self.arguments, tested)
            if each
            for name in places
            for place in places[name]
        }
        kept = {owners[value] for value in used if value in owners} | {
            name for name in self.later if places.get(name) and not self._problem(name)
        }
        while more := {owners[id(leaf)] for name in kept for leaf in self._ends(name) if id(leaf) in owners} - kept:
            kept |= more
        found = [name for name in self.starts if name in kept and places[name]]
        for name in found:
            self._check(name)
        return found

    def _ends(self, name: str) -> list[object]:
        return leaves(self.after[name].value)

    def _check(self, name: str) -> None:
        """Raise ReassignmentError where a variable that is read in the next round is no longer what it was."""
        problem = self._problem(name)
        if problem:
            start, end = self.before[name], self.after[name]
            notes = [f"it is bound before the loop at line {start.span.line}"]
            raise ReassignmentError(problem, spans=[end.span], notes=notes, help=_converted(start.value, end.value))

    def _problem(self, name: str) -> str:
        start, end = self.starts[name], self.after[name]
        if end.problem:
            return end.problem
        alike = is_alike(start, end.value)
        pairs = zip(leaves(start), leaves(end.value), strict=True) if alike else ()
        if alike and all(is_same(a, b) or (isinstance(a, Value) and common_type(a, b) == a.type) for a, b in pairs):
            return ""
        return f"'{name}' is {describe(start)} before the loop and {describe(end.value)} after a round"

    def _hand_on(self, name: str) -> list[Value]:
        """Let a variable stand, after the loop, for a result; return what the body yields for it."""
        start, parts, yields = self.starts[name], list[object](), list[Value]()
        for leaf, end in zip(leaves(start), self._ends(name), strict=True):
            if not isinstance(leaf, Value):
                parts.append(leaf)
                continue
            yields.append(as_leaf(self.t, end, leaf.type, self.node))
            result = Value("", leaf.type, self.before[name].span)
            self.inits, self.results = (*self.inits, leaf), (*self.results, result)
            parts.append(result)
        value = rebuilt(start, iter(parts))
        self.t.let(name, value, self.node)
        return yields

    def _spoil(self, name: str) -> None:
        """Let a variable stand for nothing after the loop, unless the loop leaves it alone or hands it on."""
        end = self.after.get(name)
        if end is None or (name in self.starts and not self._problem(name) and not is_runtime(self.starts[name])):
            return
        problem = f"'{name}' is bound inside the loop of line {self.node.lineno}, which may not run"
        if name in self.starts:
            problem = self._problem(name) or f"'{name}' is not read after the loop of line {self.node.lineno}"
        self.t.names[name] = Binding(None, end.span, problem, "bind it before the loop to a value of the same type")


def _converted(start: object, end: object) -> str:
    """Return how what a round leaves becomes what the next one begins with; nothing where it cannot."""
    have, want = (value.type if isinstance(value, Value) else None for value in (end, start))
    if not isinstance(have, Scalar) or not isinstance(want, Scalar):
        return ""
    if have == INDEX:
        return f"the loop counts in index: pto.cast(..., pto.{want.name}) converts it, or begin with pto.index(...)"
    return f"convert it with pto.cast(..., pto.{want.name})"
