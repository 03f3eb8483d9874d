"""Along: the lines of a tile along one of its axes, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.programs.pto_text.matrices import extents_along
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import Pair, row_of
from tilewright.programs.pto_text.writer import Writer

Where = Callable[[Number], Pair]
"""The row and the column of an element of a line, by how many come before it."""


@contextmanager
def along(w: Writer, call: Call, x: Tile, axis: int) -> Generator[tuple[Number, Where]]:
    """Let lines of text stand for each line of an op's first tile along an axis; give how long that is, and where."""
    type_ = call.args[0].type
    assert isinstance(type_, TileType)
    axis %= len(type_.shape)
    if axis == len(type_.shape) - 1 and not x.axes:
        with w.counted(x.valid[0], "line") as line:
            yield x.valid[1], lambda at: (line, at)
        return
    extents = extents_along(w, x, type_)
    with ExitStack() as loops:
        before, behind = (
            [loops.enter_context(w.counted(extent, "line")) for extent in part]
            for part in (extents[:axis], extents[axis + 1 :])
        )

        def where(at: Number) -> Pair:
            places = [*before, at, *behind]
            return row_of(w, places, type_.shape), places[-1]

        yield extents[axis], where
