"""Masked: the elements of a tile that a mask admits, one after the other."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

from tilewright.core.expr import Expr
from tilewright.core.types import TileType
from tilewright.dtypes import BOOL
from tilewright.programs.pto_text.elements import element_at
from tilewright.programs.pto_text.scalars import converted
from tilewright.programs.pto_text.values import Number, Tile
from tilewright.programs.pto_text.words import Pair, in_vec, row_of
from tilewright.programs.pto_text.writer import Writer

Mask = tuple[Tile, object]
"""A mask, and the operand that it is."""


@contextmanager
def admitted(
    w: Writer, mask: Mask, shape: Sequence[int], sizes: Sequence[Number]
) -> Generator[tuple[list[Number], Pair]]:
    """Let lines stand in loops over valid elements where a mask is True; give the place, and the row and column."""
    bits, operand = in_vec(w, mask[0]), mask[1]
    assert isinstance(operand, Expr) and isinstance(operand.type, TileType)
    extents = operand.type.shape
    with ExitStack() as loops:
        places = [loops.enter_context(w.counted(size, "at")) for size in sizes]
        inner = places[len(places) - len(extents) :]
        own = [w.constant(0) if n == 1 else at for n, at in zip(extents, inner, strict=True)]
        is_so = converted(w, element_at(w, bits, row_of(w, own, extents), own[-1]), BOOL)
        with w.block(f"scf.if {is_so.name}"):
            yield places, (row_of(w, places, shape), places[-1])
