"""Matches: which elements of a line are equal to which of another, each looked at with each.

That is quadratic, and exact: of several elements for one place the last stays, as if one came after the other.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.folds import reduced
from tilewright.backends.cuda.ttir.picks import picked
from tilewright.backends.cuda.ttir.text import I32, I64, Text, Value

TOGETHER = 1 << 12
"""How many pairs are looked at at once."""

Each = Callable[[Value, Value, Value], Value]
"""Writes what a pair counts for: whether its elements are equal, and the numbers of both in their lines."""


def last_of_each(t: Text, places: Value, live: Value) -> Value:
    """Return which live places of a line no later live one is equal to."""
    own = extents.line(t, places.shape[0])
    return t.simple("arith.andi", live, t.compare("cmpi eq", last_match(t, places, places, live), own))


def last_match(t: Text, wanted: Value, given: Value, live: Value) -> Value:
    """Return for each wanted number the place of the last live one that is equal, -1 where there is none."""

    def place(equal: Value, _: Value, theirs: Value) -> Value:
        return t.select(equal, theirs, t.integer(-1, I32, equal.shape))

    return _matched(t, wanted, _only(t, given, live), place, "arith.maxsi", -1)


def turns(t: Text, places: Value, live: Value) -> Value:
    """Return how many live places before each one in a line are equal to it."""

    def earlier(equal: Value, own: Value, theirs: Value) -> Value:
        before = t.simple("arith.andi", equal, t.compare("cmpi slt", theirs, own))
        return t.convert("arith.extui", before, I32)

    return _matched(t, places, _only(t, places, live), earlier, "arith.addi", 0)


def _only(t: Text, given: Value, live: Value) -> Value:
    """Return numbers, -1 in place of those that are not live."""
    return t.select(live, given, t.integer(-1, I64, given.shape))


def _matched(t: Text, wanted: Value, given: Value, each: Each, fold: str, start: int) -> Value:
    (rows,), (count,) = wanted.shape, given.shape
    some = min(count, max(TOGETHER // rows, 1))
    if some == count:
        return _block(t, wanted, given, extents.line(t, count), each, fold)
    low, high, by = (t.integer(number, I32) for number in (0, count, some))
    first, made, kept, turn = t.integer(start, I32, (rows,)), t.fresh(I32, (rows,)), t.fresh(I32, (rows,)), t.fresh(I32)
    head = f"{made} = scf.for {turn} = {low} to {high} step {by} iter_args({kept} = {first}) -> ({kept.type}) : i32 {{"
    with t.block(head):
        numbers = t.simple("arith.addi", extents.line(t, some), t.splat(turn, (some,)))
        found = _block(t, wanted, picked(t, given, numbers, 0), numbers, each, fold)
        t.do(f"scf.yield {t.simple(fold, kept, found)} : {kept.type}")
    return made


def _block(t: Text, wanted: Value, given: Value, numbers: Value, each: Each, fold: str) -> Value:
    shape = (wanted.shape[0], given.shape[0])
    t.pairs = max(t.pairs, shape[0] * shape[1])

    def across(line: Value, axis: int) -> Value:
        return extents.spread(t, extents.along(t, line, 2, axis), shape)

    equal = t.compare("cmpi eq", across(wanted, 0), across(given, 1))
    value = each(equal, across(extents.line(t, shape[0]), 0), across(numbers, 1))
    return reduced(t, [value], 1, lambda a, b: [t.simple(fold, a[0], b[0])])[0]
