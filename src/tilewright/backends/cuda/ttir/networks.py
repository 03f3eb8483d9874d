"""Networks: keys along an axis put in order, by exchanging each with a partner that is some power of two away.

What is exchanged with what follows from places alone, so the threads of a block never wait for each other's decisions.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.keys import is_less
from tilewright.backends.cuda.ttir.picks import picked
from tilewright.backends.cuda.ttir.text import I32, Text, Value


def ordered(t: Text, keys: Sequence[Value], axis: int) -> list[Value]:
    """Return keys of which no two are equal in ascending order along an axis."""
    count = keys[0].shape[axis]
    zero, one = t.integer(0, I32), t.integer(1, I32)
    if count == 1:
        return [*keys]
    stages = t.integer(count.bit_length(), I32)
    stage, step = t.fresh(I32), t.fresh(I32)
    with _loop(t, stage, (one, stages), keys) as (outer, given):
        with _loop(t, step, (zero, stage), given) as (inner, held):
            apart = t.simple("arith.shli", one, t.simple("arith.subi", t.simple("arith.subi", stage, one), step))
            _hand_on(t, _exchanged(t, held, axis, apart, t.simple("arith.shli", one, stage)))
        _hand_on(t, inner)
    return outer


def _exchanged(t: Text, keys: Sequence[Value], axis: int, apart: Value, run: Value) -> list[Value]:
    """Return keys after each has met its partner: runs ascend and descend in turn."""
    shape = keys[0].shape
    places = extents.along(t, extents.line(t, shape[axis]), len(shape), axis)

    def bit(mask: Value) -> Value:
        found = t.simple("arith.andi", places, t.splat(mask, places.shape))
        return t.compare("cmpi eq", found, t.integer(0, I32, places.shape))

    partners = t.simple("arith.xori", places, t.splat(apart, places.shape))
    others = [picked(t, key, partners, axis) for key in keys]
    wants_less = extents.spread(t, t.compare("cmpi eq", bit(apart), bit(run)), shape)
    keeps = t.compare("cmpi eq", is_less(t, keys, others), wants_less)
    return [t.select(keeps, key, other) for key, other in zip(keys, others, strict=True)]


class _loop:
    """A loop that carries keys: gives what it leaves, and what a turn begins with."""

    def __init__(self, t: Text, turn: Value, ends: tuple[Value, Value], given: Sequence[Value]) -> None:
        elements, shape = [value.element for value in given], given[0].shape
        self.made = t.several(elements, shape)
        self.held = [t.fresh(element, shape) for element in elements]
        pairs = ", ".join(f"{held} = {start}" for held, start in zip(self.held, given, strict=True))
        types = ", ".join(value.type for value in given)
        (low, high), by = ends, t.integer(1, I32)
        head = f"{t.bound(self.made)} = scf.for {turn} = {low} to {high} step {by} iter_args({pairs})"
        self.block = t.block(f"{head} -> ({types}) : i32 {{")

    def __enter__(self) -> tuple[list[Value], list[Value]]:
        self.block.__enter__()
        return self.made, self.held

    def __exit__(self, *error: object) -> None:
        self.block.__exit__(None, None, None)


def _hand_on(t: Text, values: Sequence[Value]) -> None:
    t.do(f"scf.yield {', '.join(map(str, values))} : {', '.join(value.type for value in values)}")
