"""A way: how an op comes into a random program, signed in by the op's name."""

from __future__ import annotations

from collections.abc import Callable

from property.kernels import spelled
from property.values import Value, shape_of
from property.writer import Writer

from tilewright.core.op import Op

Way = Callable[[Writer, Op], "Value | None"]
"""Writes a call of an op; returns what it gives, or None where that is nowhere or already seen."""

WAYS: dict[str, Way] = {}


def way(*names: str) -> Callable[[Way], Way]:
    """Sign in the way of some ops."""

    def sign(function: Way) -> Way:
        WAYS.update(dict.fromkeys(names, function))
        return function

    return sign


def called(w: Writer, op: Op, *arguments: str) -> Value | None:
    """Write a call of an op under its own name."""
    return w.make(f"{spelled(op.spec, op.kind)}({', '.join(arguments)})", keep=True)


def cut_short(w: Writer, tile: Value) -> Value:
    """Return a tile only part of which holds data, how much often known to the running program only."""
    shape = shape_of(tile)
    sizes = ", ".join(w.index(extent)[0] for extent in shape)
    zeros = ", ".join("0" for _ in shape)
    return w.make(f"pl.slice({tile.name}, {list(shape)}, [{zeros}], valid_shape=[{sizes}])", keep=True) or tile
