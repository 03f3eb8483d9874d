"""Loop bounds: a loop variable lies where it is said to, whatever its limits turn out to be."""

from __future__ import annotations

from itertools import product

from tilewright.core.expr import Expr, Var, integer
from tilewright.core.rewrite import loop_bounds
from tilewright.core.types import ScalarType
from tilewright.dtypes import INDEX

SPANS = [(0, 0), (0, 3), (-2, 2), (5, 9)]


def somewhere(low: int, high: int) -> Expr:
    return integer(low) if low == high else Var("n", ScalarType(INDEX), bounds=(low, high))


def test_every_turn_lies_between_the_bounds() -> None:
    for first, last, step in product(SPANS, SPANS, (-3, -1, 1, 2)):
        found = loop_bounds(somewhere(*first), somewhere(*last), integer(step))
        starts, stops = range(first[0], first[1] + 1), range(last[0], last[1] + 1)
        turns = {turn for start, stop in product(starts, stops) for turn in range(start, stop, step)}
        assert not turns if found is None else all(found[0] <= turn <= found[1] for turn in turns)


def test_what_is_not_known_bounds_nothing() -> None:
    free = Var("n", ScalarType(INDEX))
    assert loop_bounds(integer(0), free, integer(1)) is None and loop_bounds(free, integer(4), integer(1)) is None
    assert loop_bounds(integer(0), somewhere(1, 4), free) is None
    assert loop_bounds(somewhere(0, 15), integer(4096), integer(16)) == (0, 4095)
