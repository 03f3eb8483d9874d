"""Masks: choices that most turns of a loop need not make, since their condition holds for all elements.

A condition that compares positions, moved by numbers, holds everywhere if it does where it is hardest to meet. That is
one comparison of numbers; only where it fails are elements looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tilewright.backends.cuda.ttgir.chain import PART, Chain
from tilewright.backends.cuda.ttgir.group import Group, derived
from tilewright.backends.cuda.ttgir.layouts import DOWN
from tilewright.backends.cuda.ttgir.operations import Operation
from tilewright.records import record

FAR = 1 << 28
"""Numbers that are farther from zero are not computed with: their sums might not fit."""
MOST = 1 << 31
_SAME = ("arith.extsi", "arith.trunci", "tt.expand_dims", "tt.broadcast")
_ORDERS = {"sle": ("sle", False), "slt": ("slt", False), "sge": ("sle", True), "sgt": ("slt", True)}
"""Comparisons as ones that ask for something below, and whether their sides are turned for that."""


@record
class Span:
    """Integers: the sum of some numbers of the running kernel, so many times each, and of one between two bounds."""

    terms: tuple[tuple[str, int], ...]
    low: int
    high: int

    def times(self, factor: int) -> Span:
        """Return all of them multiplied."""
        ends = sorted((self.low * factor, self.high * factor))
        return Span(tuple((name, factor * count) for name, count in self.terms), ends[0], ends[1])

    def plus(self, other: Span) -> Span:
        """Return the sums of two."""
        return Span((*self.terms, *other.terms), self.low + other.low, self.high + other.high)

    @property
    def is_small(self) -> bool:
        """Whether everything fits 32 bits, where the numbers are not far from zero."""
        return sum(abs(count) for _, count in self.terms) * FAR + max(abs(self.low), abs(self.high)) < MOST


@record
class Order:
    """That one span is below another, or not above it."""

    predicate: str
    below: Span
    above: Span


class Masks:
    """The choices in a chain's loop that are only made where their condition does not hold everywhere."""

    def __init__(self, g: Group, body: Sequence[Operation]) -> None:
        self.g = g
        self._made = {name: op for op in g.chain.operations for name in op.results}
        self.found: dict[Operation, list[Order | str]] = {}
        self.moved: dict[Operation, list[Operation]] = {}
        for op in body:
            if op.name == "arith.select" and op.types and op.types[0][1] == "i1":
                holds = self._condition(op.operands[0])
                if holds:
                    self.found[op] = holds
                    self.moved[op] = _only_for(op, body, g.chain)
        self.later = {each for ops in self.moved.values() for each in ops}

    def write(self, op: Operation) -> None:
        """Write a choice: what is chosen where the condition holds, unless it does not hold everywhere."""
        g, result = self.g, op.results[0]
        _, then, _ = op.operands
        type_ = g.layouts.tensor(*op.types[1])
        everywhere = derived(result, "everywhere")
        self._write_condition(everywhere, self.found[op])
        g.say(f"{result} = scf.if {everywhere} -> ({type_}) {{")
        g.say(f"scf.yield {then} : {type_}")
        g.say("} else {")
        g.write([*self.moved[op], Operation(op.name, (derived(result, "chosen"),), op.text, op.place)])
        g.say(f"scf.yield {derived(result, 'chosen')} : {type_}")
        g.say("}")

    # which conditions

    def _condition(self, name: str) -> list[Order | str]:
        """Return what makes a condition hold everywhere, orders and conditions; nothing where that is unknown."""
        op = self._made.get(name)
        if op is None:
            return []
        if op.name in ("tt.broadcast", "tt.expand_dims"):
            return self._condition(op.operands[0])
        if op.name == "tt.splat":
            return [op.operands[0]]
        if op.name == "arith.andi":
            both = [self._condition(each) for each in op.operands]
            return [*both[0], *both[1]] if all(both) else []
        return list(self._order(op)) if op.name == "arith.cmpi" else []

    def _order(self, op: Operation) -> Iterator[Order]:
        said = re.match(r"arith\.cmpi (\w+),", op.text)
        left, right = (self._span(each) for each in op.operands)
        if said is None or said[1] not in _ORDERS or left is None or right is None:
            return
        predicate, is_turned = _ORDERS[said[1]]
        below, above = (right, left) if is_turned else (left, right)
        if below.is_small and above.is_small:
            yield Order(predicate, below, above)

    def _span(self, name: str) -> Span | None:
        op = self._made.get(name)
        if op is None:
            return None
        if op.name in _SAME and op.types:
            return self._span(op.operands[0])
        if op.name == "tt.make_range":
            return self._range(op)
        if op.name == "arith.constant":
            found = re.match(r"arith\.constant (?:dense<)?(-?\d+)>? :", op.text)
            return Span((), int(found[1]), int(found[1])) if found else None
        if op.name == "tt.splat":
            return self._span(op.operands[0]) or self._number(op.operands[0])
        if op.name not in ("arith.addi", "arith.subi", "arith.muli") or not op.types:
            return None
        left, right = (self._span(each) for each in op.operands)
        return None if left is None or right is None else _combined(op.name, left, right)

    def _number(self, name: str) -> Span | None:
        return Span(((name, 1),), 0, 0) if self._width(name) in ("i32", "i64") else None

    def _width(self, name: str) -> str:
        """Return the type of a number, nothing where that is not said."""
        op = self._made.get(name)
        if op is None:
            return "i64" if name == self.g.chain.loop.index else ""
        return op.text.rsplit(" ", 1)[-1]

    def _range(self, op: Operation) -> Span | None:
        ends = re.search(r"end = (\d+) : i32, start = 0 ", op.text)
        if ends is None:
            return None
        if self.g.layouts.way(op) == DOWN:
            return Span((), self.g.first_row, self.g.first_row + PART - 1)
        return Span((), 0, int(ends[1]) - 1)

    # what is written

    def _write_condition(self, name: str, holds: Sequence[Order | str]) -> None:
        """Write whether everything holds."""
        g, parts = self.g, [each for each in holds if isinstance(each, str)]
        for number, order in enumerate(each for each in holds if isinstance(each, Order)):
            own = f"{name}_{number}"
            below = self._sum(f"{own}_below", order.below.terms, order.below.high, parts)
            above = self._sum(f"{own}_above", order.above.terms, order.above.low, parts)
            g.say(f"{own} = arith.cmpi {order.predicate}, {below}, {above} : i64")
            parts.append(own)
        *rest, last = parts
        for number, part in enumerate(rest):
            both = f"{name}_all{number}"
            g.say(f"{both} = arith.andi {last}, {g.name(part)} : i1")
            last = both
        g.say(f"{name} = arith.andi {last}, %true : i1")

    def _sum(self, own: str, terms: Sequence[tuple[str, int]], number: int, parts: list[str]) -> str:
        """Write a sum of numbers, in 64 bits; add to parts that none of them is far from zero."""
        g = self.g
        g.say(f"{own} = arith.constant {number} : i64")
        total = own
        for place, (term, count) in enumerate(terms):
            wide = f"{own}{place}"
            is_short = self._width(term) == "i32"
            g.say(f"{wide}_zero = arith.constant 0 : i64")
            if is_short:
                g.say(f"{wide} = arith.extsi {g.name(term)} : i32 to i64")
            else:
                g.say(f"{wide} = arith.addi {g.name(term)}, {wide}_zero : i64")
            g.say(f"{wide}_far = arith.constant {FAR} : i64")
            g.say(f"{wide}_range = arith.constant {2 * FAR} : i64")
            g.say(f"{wide}_moved = arith.addi {wide}, {wide}_far : i64")
            g.say(f"{wide}_near = arith.cmpi ult, {wide}_moved, {wide}_range : i64")
            parts.append(f"{wide}_near")
            g.say(f"{wide}_count = arith.constant {count} : i64")
            g.say(f"{wide}_times = arith.muli {wide}, {wide}_count : i64")
            g.say(f"{wide}_total = arith.addi {total}, {wide}_times : i64")
            total = f"{wide}_total"
        return total


def _combined(name: str, left: Span, right: Span) -> Span | None:
    if name == "arith.addi":
        return left.plus(right)
    if name == "arith.subi":
        return left.plus(right.times(-1))
    for one, other in ((left, right), (right, left)):
        if not one.terms and one.low == one.high:
            return other.times(one.low)
    return None


def _only_for(op: Operation, body: Sequence[Operation], chain: Chain) -> list[Operation]:
    """Return the operations on tensors that are there for the condition of a choice alone, in order."""
    before = body[: body.index(op)]
    kept: list[Operation] = []
    wanted = {op.operands[0]}
    for each in reversed(before):
        users = [user for user in chain.operations if set(each.results) & set(user.operands)]
        is_free = each not in chain.products and not set(each.results) & set(chain.loop.given)
        if each.types and wanted & set(each.results) and is_free and all(user is op or user in kept for user in users):
            kept.append(each)
            wanted.update(each.operands)
    return kept[::-1]
