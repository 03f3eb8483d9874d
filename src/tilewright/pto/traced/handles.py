"""Handles: `with pto.for_(...)` and `with pto.if_(...)`, whose carried values are named instead of found.

A handle lives while its function is traced. What a loop carries and what the sides of a branch assign are attributes of
it: `loop.acc` inside the loop, `loop.final("acc")` after it, `branch.value` after the branch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from tilewright.errors import ArgumentCountError, OperandError, UnsupportedFeatureError
from tilewright.pto.module import Clause, Op, Region, Value
from tilewright.pto.traced.arguments import Argument, Arguments
from tilewright.pto.traced.ops import handles
from tilewright.pto.traced.scalars import as_index, as_number, as_type
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import Handle, describe
from tilewright.pto.types import I1, INDEX, Scalar


@dataclass(eq=False)
class LoopHandle(Handle):
    """A loop that counts when the kernel runs."""

    bounds: tuple[Value, Value, Value]
    starts: dict[str, Value] = field(default_factory=dict[str, Value])
    inside: dict[str, Value] = field(default_factory=dict[str, Value])
    """What the names stand for in the loop: the counter `iv`, and what is carried."""
    ends: dict[str, Value] | None = None
    finals: dict[str, Value] = field(default_factory=dict[str, Value])

    def __getattr__(self, name: str) -> Value:
        try:
            return self.inside[name]
        except KeyError:
            raise AttributeError(name) from None

    def carry(self, t: Tracer, given: Arguments) -> LoopHandle:
        """Name what goes from one round to the next, with what it is before the first."""
        self.starts |= {name: as_number(t, each.value, each.node) for name, each in _named(t, given).items()}
        return self

    def update(self, t: Tracer, given: Arguments) -> None:
        """Say what is carried into the next round: all of it, once."""
        named = _named(t, given)
        if self.ends is not None or set(named) != set(self.starts):
            help = f"loop.update({', '.join(f'{name}=...' for name in self.starts)}), once at the end of the loop"
            raise t.error(ArgumentCountError, given.node, "a loop updates all that it carries, once", help=help)
        self.ends = {name: _alike(t, named[name], start) for name, start in self.starts.items()}

    def final(self, t: Tracer, given: Arguments) -> Value:
        """Return what something carried is after the last round."""
        name = given.bind(t, "name")["name"]
        if name.value not in self.finals:
            help = f"it carries {', '.join(self.starts) or 'nothing'}, and `final` comes after it"
            raise t.error(OperandError, name.node, f"this loop has no final {name.value!r}", help=help)
        return self.finals[name.value]

    def opened(self, t: Tracer, node: ast.With) -> Value:
        """Begin the loop; return its counter."""
        span = t.span(node.items[0].context_expr)
        self.inside = {name: Value(t.writer.fresh(name), start.type, span) for name, start in self.starts.items()}
        self.inside["iv"] = Value(t.writer.fresh("iv"), INDEX, span)
        if self.bounds[0] in t.writer.never_negative:
            t.writer.never_negative.add(self.inside["iv"])
        return self.inside["iv"]

    @property
    def arguments(self) -> tuple[Value, ...]:
        """What a round starts from."""
        return (self.inside["iv"], *(self.inside[name] for name in self.starts))

    def closed(self, t: Tracer, region: Region, node: ast.With) -> None:
        """End the loop and write it."""
        span = t.span(node.items[0].context_expr)
        if self.starts and self.ends is None:
            help = f"end it with loop.update({', '.join(f'{name}=...' for name in self.starts)})"
            raise t.error(UnsupportedFeatureError, node.items[0].context_expr, "this loop updates nothing", help=help)
        if self.ends:
            region.ops.append(Op("scf.yield", tuple(self.ends.values()), span=span))
        self.finals = {name: Value(t.writer.fresh(name), start.type, span) for name, start in self.starts.items()}
        self.inside = {}
        clauses = (Clause("iter_args", tuple(self.starts.values()), span),) if self.starts else ()
        results = tuple(self.finals.values())
        t.writer.emit(Op("scf.for", self.bounds, clauses, results=results, regions=(region,), span=span))


@dataclass(eq=False)
class BranchSide:
    """One side of a branch: what `with` opens."""

    owner: BranchHandle
    region: Region | None = None
    assigned: dict[str, Value] = field(default_factory=dict[str, Value])


@dataclass(eq=False)
class BranchHandle(Handle):
    """A branch that is taken when the kernel runs."""

    condition: Value
    then_: BranchSide = field(init=False)
    else_: BranchSide = field(init=False)
    open: BranchSide | None = None
    """The side that is being traced."""
    named: dict[str, Value] = field(default_factory=dict[str, Value])
    """What both sides assign, after the branch."""

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that the branch gives, in order."""
        return tuple(self.named.values())

    def __post_init__(self) -> None:
        self.then_, self.else_ = BranchSide(self), BranchSide(self)

    def __getattr__(self, name: str) -> Value:
        try:
            return self.named[name]
        except KeyError:
            raise AttributeError(name) from None

    def assign(self, t: Tracer, given: Arguments) -> None:
        """Say what values the side at hand gives."""
        if self.open is None or self.open.assigned:
            help = "branch.assign(name=value), once in each of `with branch.then_:` and `with branch.else_:`"
            raise t.error(UnsupportedFeatureError, given.node, "a side of a branch assigns once", help=help)
        self.open.assigned = {name: as_number(t, each.value, each.node) for name, each in _named(t, given).items()}

    def closed(self, t: Tracer, node: ast.With) -> None:
        """Write the branch."""
        where = node.items[0].context_expr
        sides, span = (self.then_, self.else_), t.span(where)
        if self.then_.region is None:
            help = "with branch.then_: ... with branch.else_: ..."
            raise t.error(UnsupportedFeatureError, where, "this branch has no `then_`", help=help)
        types = [{name: value.type for name, value in side.assigned.items()} for side in sides]
        if types[0] != types[1]:
            message = f"one side assigns {_shown(self.then_)}, the other {_shown(self.else_)}"
            raise t.error(OperandError, where, message, help="assign the same names of the same types on both sides")
        names = list(self.then_.assigned)
        regions = [side.region for side in sides if side.region is not None]
        for side in sides:
            if names and side.region is not None:
                side.region.ops.append(Op("scf.yield", tuple(side.assigned[name] for name in names), span=span))
        self.named = {name: Value(t.writer.fresh(name), self.then_.assigned[name].type, span) for name in names}
        t.writer.emit(Op("scf.if", (self.condition,), results=self.results, regions=tuple(regions), span=span))


def _shown(side: BranchSide) -> str:
    return ", ".join(f"{name}: {describe(value)}" for name, value in side.assigned.items()) or "nothing"


def _named(t: Tracer, given: Arguments) -> dict[str, Argument]:
    if given.args:
        raise t.error(ArgumentCountError, given.args[0].node, f"`{given.name}` takes names", help="name=value")
    return given.kwargs


def _alike(t: Tracer, argument: Argument, start: Value) -> Value:
    """Return the next value of something carried, whose type stays."""
    if isinstance(start.type, Scalar):
        return as_type(t, argument.value, start.type, argument.node)
    if not isinstance(argument.value, Value) or argument.value.type != start.type:
        message = f"{describe(start)} is carried here, got {describe(argument.value)}"
        raise t.error(OperandError, argument.node, message, help="what is carried keeps its type")
    return argument.value


@handles("yield_")
def _yield(t: Tracer, given: Arguments) -> None:
    """End a round, or a side of a branch, with values in order: what a loop carries, `branch.results[0]` and so on."""
    owner = t.yields_to
    if not isinstance(owner, LoopHandle | BranchHandle):
        help = "use it inside `with pto.for_(...)` or a side of `with pto.if_(...)`"
        raise t.error(UnsupportedFeatureError, given.node, "nothing here takes what is yielded", help=help)
    names = list(owner.starts) if isinstance(owner, LoopHandle) else [f"_{n}" for n in range(len(given.args))]
    if given.kwargs or len(names) != len(given.args):
        message = f"{len(names)} values are carried here, and {len(given.args)} yielded"
        raise t.error(ArgumentCountError, given.node, message, help=f"pto.yield_({', '.join(names)})")
    named = Arguments(given.name, given.node, given.word, [], dict(zip(names, given.args, strict=True)))
    owner.update(t, named) if isinstance(owner, LoopHandle) else owner.assign(t, named)


@handles("for_")
def _for(t: Tracer, given: Arguments) -> LoopHandle:
    bound = given.bind(t, "start", "stop", optional=("step",))
    step = bound.get("step", Argument(1, given.node))
    if isinstance(step.value, int) and step.value <= 0:
        raise t.error(UnsupportedFeatureError, step.node, "loops count upwards", help="take a step above zero")
    start, stop = (as_index(t, bound[name].value, bound[name].node) for name in ("start", "stop"))
    return LoopHandle((start, stop, as_index(t, step.value, step.node)))


@handles("if_")
def _if(t: Tracer, given: Arguments) -> BranchHandle:
    condition = given.bind(t, "condition")["condition"]
    return BranchHandle(as_type(t, condition.value, I1, condition.node))
