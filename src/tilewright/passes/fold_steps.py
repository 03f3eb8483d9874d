"""Fold steps: loops that are online folds, and the steps that they could take instead.

A loop that ends with the rows that it folds, `range(0, row + 64, 64)`, keeps its steps and they their number, though a
causal mask hides all that others would see: what is hidden weighs nothing, and nothing times infinity is no number. One
of small steps is split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.extents import as_extent
from tilewright.passes.inner_steps import Steps
from tilewright.passes.online_folds import OnlineFold
from tilewright.passes.spans import Span, span_of
from tilewright.passes.split_folds import pieces_of
from tilewright.passes.tile_axes import TileAxes

GRAIN = 16
"""What steps are multiples of: elements of a vector."""


def online_folds(axes: TileAxes) -> list[OnlineFold]:
    """Return the loops of a kernel that carry something, if all of them are online folds; none where they are not."""
    folds = [OnlineFold(loop, axes) for loop in axes.loops.values() if loop.iter_args]
    return folds if all(fold.is_one for fold in folds) else []


class FoldSteps(Steps):
    """The online folds of a kernel in steps of about a wanted size."""

    def __init__(self, axes: TileAxes, folds: Sequence[OnlineFold], wanted: int) -> None:
        super().__init__(axes)
        for fold in folds:
            span = _span(fold)
            if span is not None and (size := span.wider(wanted, GRAIN, GRAIN)) != span.step:
                self.take(replace(fold.loop, stop=span.stop), fold.keys, (span.step, size))


def _span(fold: OnlineFold) -> Span | None:
    """Return what a fold covers, None where it cuts something else as well."""
    loop, keys = fold.loop, fold.keys
    cuts = [cut for found in keys for cut in found.cuts]
    sound = all(not found.is_fixed and found.begins_at(loop.loop_var) for found in keys)
    if not sound or loop.loop_var in fold.axes.fixed:
        return None
    if (size := pieces_of(loop.stop)) and isinstance(step := as_extent(loop.step), int):
        return Span(0, loop.stop, step, size, exact=True)
    span = span_of(loop, cuts, [cut.extent for cut in cuts])
    return span.as_even if span is not None and all(found.sizes == {span.step} for found in keys) else None
