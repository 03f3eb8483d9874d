"""Along: the lines of a tile along one of its axes, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import prod

from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import INDEX
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import ONE_BY_ONE, Pair, refuse
from tilewright.programs.pto_text.writer import Writer

Where = Callable[[Number], Pair]
"""The row and the column of an element of a line, by how many come before it."""


@contextmanager
def along(w: Writer, call: Call, x: Tile, axis: int) -> Generator[tuple[Number, Where]]:
    """Let lines of text stand for each line of an op's first tile along an axis; give how long that is, and where."""
    type_ = call.args[0].type
    assert isinstance(type_, TileType)
    outer, inner = type_.shape[: axis % len(type_.shape)], type_.shape[axis % len(type_.shape) + 1 :]
    if not inner:
        with w.counted(x.valid[0], "line") as line:
            yield x.valid[1], lambda at: (line, at)
        return
    refuse(call, prod(outer) != 1, "along an axis in the middle", ONE_BY_ONE)
    apart = w.constant(prod(inner[:-1]))
    with w.counted(apart, "line") as line, w.counted(x.valid[1], "column") as column:
        yield (
            computed(w, "floordiv", [x.valid[0], apart], INDEX),
            lambda at: (computed(w, "add", [computed(w, "mul", [at, apart], INDEX), line], INDEX), column),
        )
