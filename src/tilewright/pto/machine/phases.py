"""Phases: a function of work items, cut where they meet.

Between two ops at which work items see each other (a vote, a shuffle, `syncthreads`), each runs on its own, so that
is a loop over them. What one still needs afterwards it keeps in an array with a place for each:

    %a = ...                  for t: a = ...; kept_a[t] = a
    %b = pto.redux_add %a     for each warp: sum = kept_a[its lanes]; kept_b[its lanes] = sum
    pto.stg %b, %p[%a]        for t: store kept_b[t] at kept_a[t]

Branches and loops that hold such an op run once for all of them; a mask says who takes part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import reduce

from tilewright.core.expr import Expr, Var, constant
from tilewright.dtypes import BOOL
from tilewright.ops.builder import known
from tilewright.pto.machine.carrying import check_step
from tilewright.pto.machine.cores import CUBE
from tilewright.pto.machine.crews import Array, Crew, Kept
from tilewright.pto.machine.machine import Machine, Place
from tilewright.pto.machine.threads import MOST_THREADS, WARP, each_of, numbered, running, total
from tilewright.pto.machine.tiles import check_range
from tilewright.pto.machine.values import Lowered, Number
from tilewright.pto.module import Func, Op, Region, SymbolRef, Value, cases_of
from tilewright.pto.text.form import Syntax
from tilewright.pto.types import Scalar

_ENDINGS = ("scf.yield", "scf.condition", "func.return")


def meeting_size(m: Machine, func: Func) -> int:
    """Return how many work items wait for each other in a function: one where none does."""
    assert func.body is not None
    outer = m.calls
    m.calls = [*outer, func]
    size = max((_size(m, op) for op in func.body.ops), default=1)
    m.calls = outer
    return size


def _size(m: Machine, op: Op) -> int:
    callee = op.attributes.get("callee")
    if isinstance(callee, SymbolRef):
        return meeting_size(m, m.callee(callee.name))
    inner = (_size(m, each) for region in op.regions for each in region.ops)
    return max(m.ops[op.name].meets, *inner, 1)


class Phases(Crew):
    """The work items of a crew, running a function phase by phase."""

    def __init__(self, m: Machine, extents: Place, room: int, first: Expr, count: Expr) -> None:
        super().__init__(m, extents, room, first, count)
        self._uses: Counter[Value] = Counter()

    def function(self, func: Func, arguments: Sequence[Lowered]) -> None:
        """Run a function."""
        m = self.m
        with m.inside(func):
            m.values = dict(zip(func.arguments, arguments, strict=True))
            outer, m.simt.crew = m.simt.crew, self
            self._body(func)
            m.simt.crew = outer

    # walking

    def _region(self, region: Region) -> tuple[Value, ...]:
        """Run the ops of a region; return what its last one hands on."""
        alone: list[Op] = []
        for op in region.ops:
            if op.name in _ENDINGS:
                self._phase(alone)
                return op.operands
            if _size(self.m, op) == 1:
                alone.append(op)
                continue
            self._phase(alone)
            alone = []
            self._meeting(op)
        self._phase(alone)
        return ()

    def _phase(self, ops: Sequence[Op]) -> None:
        """Let each work item run ops on its own."""
        if not ops:
            return
        m = self.m
        inner = [each for op in ops for each in op.walk()]
        used = Counter(use for op in inner for use in op.uses)
        with self.each() as index, running(m, numbered(m, self.extents, m.b.add(self.first, index))):
            for value in used:
                if value in self.kept:
                    m.values[value] = self.fetch(value, index)
            for op in ops:
                m.op(op)
            made = [value for op in ops for value in op.results]
            self.keep([value for value in made if self._uses[value] > used[value]], index)

    def _meeting(self, op: Op) -> None:
        m = self.m
        walk = _STRUCTURED.get(m.ops[op.name].form.syntax)
        outer, m.b.span = m.b.span, op.span
        if walk is None:
            m.op(op)
        else:
            walk(self, op)
        m.b.span = outer

    def _alias(self, names: Sequence[Value], values: Sequence[Value]) -> None:
        """Let values go by other names."""
        for name, value in zip(names, values, strict=True):
            if value in self.kept:
                self.kept[name] = self.kept[value]
            else:
                self.kept.pop(name, None)
                self.m.values[name] = self.m.values[value]

    # branches and loops around a meeting

    def _call(self, op: Op) -> None:
        callee = op.attributes["callee"]
        assert isinstance(callee, SymbolRef)
        with self.m.calling(op, callee.name) as func, self.m.inside(func):
            self._alias(func.arguments, op.operands)
            self._alias(op.results, self._body(func))

    def _body(self, func: Func) -> tuple[Value, ...]:
        assert func.body is not None
        self._uses.update(use for op in func.body.ops for inner in op.walk() for use in inner.uses)
        return self._region(func.body)

    def _if(self, op: Op) -> None:
        self._choose(op, (1,))

    def _switch(self, op: Op) -> None:
        self._choose(op, cases_of(op))

    def _choose(self, op: Op, cases: Sequence[int]) -> None:
        """Run the regions of some numbers, each by those who have that one, and the last region by the others."""
        chooser = op.operands[0]
        fixed = known(self.m.expr(chooser)) if chooser not in self.kept else None
        if fixed is not None:
            taken = op.regions[cases.index(fixed) if fixed in cases else len(cases) :][:1]
            self._alias(op.results, self._region(taken[0]) if taken else ())
            return
        results: list[Kept] = []
        for number, region in enumerate(op.regions):
            with self.narrowed(lambda index, number=number: self._has(chooser, index, cases, number)):
                handed = self._region(region)
                results = results or self._arrays(handed)
                self._hand_on(results, handed)
        self.kept.update(zip(op.results, results, strict=True))

    def _has(self, chooser: Value, index: Expr, cases: Sequence[int], number: int) -> Expr:
        """Return whether a work item has the number of a region, or none of them."""
        b, found, dtype = self.m.b, self.at(chooser, index), chooser.of(Scalar).dtype
        each = [found if dtype == BOOL else b.scalar("eq", found, constant(case, dtype)) for case in cases]
        if number < len(cases):
            return each[number]
        return b.scalar("not_", reduce(lambda one, other: b.scalar("or_", one, other), each))

    def _execute(self, op: Op) -> None:
        self._alias(op.results, self._region(op.regions[0]))

    def _for(self, op: Op) -> None:
        region, inits = op.regions[0], op.clause("iter_args") or ()
        carried = self._arrays(inits)
        self._hand_on(carried, inits)
        counter, names = region.arguments[0], region.arguments[1:]
        self.kept.update(zip(names, carried, strict=True))
        if any(bound in self.kept for bound in op.operands):
            self._loop(op, counter, lambda: self._hand_on(carried, self._region(region)))
        else:
            start, stop, step = (self.m.index(bound) for bound in op.operands)
            check_step(self.m, step)
            with self.m.b.loop(start, stop, step, hint=counter.name) as turn:
                self.m.values[counter] = Number(self.m.b.cast(turn, counter.of(Scalar).dtype))
                self._hand_on(carried, self._region(region))
        self.kept.update(zip(op.results, carried, strict=True))

    def _loop(self, op: Op, counter: Value, body: Callable[[], None]) -> None:
        """Write a loop whose bounds are each work item's own: it turns while anybody has turns left."""
        m = self.m
        start, stop, step = op.operands
        self.made(counter)
        with self.each() as index:
            check_step(m, m.b.index(self.at(step, index)))
            self.put(self.kept[counter], [self.at(start, index)], index)
        going = self.flags(lambda index: m.b.scalar("lt", self.at(start, index), self.at(stop, index)))
        with self._while_any(going):
            body()
            with self.each() as index:
                after = m.b.scalar("add", self.at(counter, index), self.at(step, index))
                self.put(self.kept[counter], [after], index)
                self.set(going, m.b.scalar("lt", after, self.at(stop, index)), index)

    def _while(self, op: Op) -> None:
        before, after = op.regions
        carried = self._arrays(op.operands)
        self._hand_on(carried, op.operands)
        self.kept.update(zip(before.arguments, carried, strict=True))
        going = self.flags(lambda index: constant(True, BOOL))
        with self._while_any(going):
            condition, *handed = self._region(before)
            results = self._arrays(handed)
            self._hand_on(results, handed)
            self.kept.update(zip(after.arguments, results, strict=True))
            self.kept.update(zip(op.results, results, strict=True))
            with self.each() as index:
                self.set(going, self.at(condition, index), index)
            self._hand_on(carried, self._region(after))

    def _arrays(self, values: Sequence[Value]) -> list[Kept]:
        """Return arrays for values that branches or loops hand on."""
        likes = [self.kept[value].like if value in self.kept else self.m.values[value] for value in values]
        return [self.arrays(like) for like in likes]

    def _hand_on(self, arrays: Sequence[Kept], values: Sequence[Value]) -> None:
        """Store values under arrays that carry them, all of them read before any is written."""
        if not arrays:
            return
        with self.each() as index:
            parts = [self.m.parts(self.fetch(value, index)) for value in values]
            for kept, each in zip(arrays, parts, strict=True):
                self.put(kept, each, index)

    @contextmanager
    def _while_any(self, going: Array) -> Generator[None]:
        """Write a loop that turns while anybody goes on, who alone takes part in it."""
        m = self.m
        outer, self.mask = self.mask, going
        goes_on = m.b.held(constant(True, BOOL), "goes_on")
        self._look(going, goes_on)
        with m.b.block() as body:
            yield
            self._look(going, goes_on)
        m.b.repeat(goes_on, body)
        self.mask = outer

    def _look(self, going: Array, goes_on: Var) -> None:
        """Find out whether anybody goes on."""
        m = self.m
        m.b.assign(goes_on, constant(False, BOOL))
        with self.everyone() as index, m.b.when(self.get(going, index)):
            m.b.assign(goes_on, constant(True, BOOL))


_STRUCTURED = {
    Syntax.FOR: Phases._for,  # pyright: ignore[reportPrivateUsage]
    Syntax.IF: Phases._if,  # pyright: ignore[reportPrivateUsage]
    Syntax.WHILE: Phases._while,  # pyright: ignore[reportPrivateUsage]
    Syntax.SWITCH: Phases._switch,  # pyright: ignore[reportPrivateUsage]
    Syntax.EXECUTE: Phases._execute,  # pyright: ignore[reportPrivateUsage]
    Syntax.CALL: Phases._call,  # pyright: ignore[reportPrivateUsage]
}


def launch(m: Machine, site: Op, name: str, extents: Place, arguments: Sequence[Lowered]) -> None:
    """Let every work item run the function of a name: one after the other, or in step where they meet."""
    if m.core is not None and m.core.kind == CUBE:
        return  # work items are the vector cores'
    for extent, axis in zip(extents, "xyz", strict=True):
        check_range(m, extent, MOST_THREADS, f"a launch has 0 to {MOST_THREADS} work items along {axis}")
    count = total(m, extents)
    check_range(m, count, MOST_THREADS, f"a launch has at most {MOST_THREADS} work items")
    with m.calling(site, name) as func:
        size = meeting_size(m, func)
        if size == 1:
            with each_of(m, extents):
                m.function(func, arguments)
        elif size <= WARP:
            with m.b.loop(0, count, WARP, hint="warp") as first:
                left = m.b.scalar("sub", count, first)
                Phases(m, extents, WARP, first, m.b.least(m.b.index(WARP), left)).function(func, arguments)
        else:
            room = -(-(known(count) or MOST_THREADS) // WARP) * WARP
            Phases(m, extents, room, m.b.index(0), count).function(func, arguments)
