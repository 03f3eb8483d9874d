"""Fold steps: loops that are online folds, and the steps that they could take instead.

Some end with the rows that they fold: `range(0, row + 64, 64)`. Where all later elements are hidden, as a causal mask
does, other tiles of rows end elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import scalar
from tilewright.core.expr import Call, ConstInt, Expr, Var, integer
from tilewright.core.extents import as_extent, as_scalar
from tilewright.core.stmt import ForStmt
from tilewright.core.types import Extent
from tilewright.passes.inner_steps import Steps
from tilewright.passes.online_folds import OnlineFold
from tilewright.passes.spans import Span, span_of
from tilewright.passes.tile_axes import Cut, TileAxes, is_number
from tilewright.records import record

GRAIN = 16
"""What steps are multiples of: elements of a vector."""


@record
class End:
    """Where a loop ends that ends with its rows: so many elements after the first, and not after `limit`."""

    row: Var
    after: int
    limit: Extent


def online_folds(axes: TileAxes) -> list[OnlineFold]:
    """Return the loops of a kernel that carry something, if all of them are online folds; none where they are not."""
    folds = [OnlineFold(loop, axes) for loop in axes.loops.values() if loop.iter_args]
    return folds if all(fold.is_one for fold in folds) else []


def ends_with(loops: Sequence[ForStmt], folds: Sequence[OnlineFold], row: Var) -> bool:
    """Return whether loops that a variable ends are online folds that need not end there."""
    ends = {fold.loop.loop_var: _end(fold) for fold in folds}
    return all((end := ends.get(loop.loop_var)) is not None and end.row is row for loop in loops)


class FoldSteps(Steps):
    """The online folds of a kernel in steps of about a wanted size; rows that they end with may be others as well."""

    def __init__(
        self, axes: TileAxes, folds: Sequence[OnlineFold], wanted: int, rows: Mapping[Var, tuple[int, int]]
    ) -> None:
        super().__init__(axes)
        for fold in folds:
            self._widen(fold, wanted, rows)

    def _widen(self, fold: OnlineFold, wanted: int, rows: Mapping[Var, tuple[int, int]]) -> None:
        loop, end = fold.loop, _end(fold)
        if end is not None and end.row in rows:
            before, after = rows[end.row]
            last = scalar("add", end.row, integer(end.after + after - before))
            loop = replace(loop, stop=last if end.limit is None else scalar("min", last, as_scalar(end.limit)))
            self.rewritten[loop.loop_var] = loop
        span = _span(fold, end)
        if span is None:
            return
        size = span.wider(wanted, GRAIN, GRAIN)
        if size != span.step:
            self.take(loop if end is not None else replace(loop, stop=span.stop), fold.keys, (span.step, size))


def _span(fold: OnlineFold, end: End | None) -> Span | None:
    """Return what a fold covers, None where it cuts something else as well."""
    loop, keys = fold.loop, fold.keys
    cuts = [cut for found in keys for cut in found.cuts]
    sound = all(not found.is_fixed and found.begins_at(loop.loop_var) for found in keys)
    if not sound or loop.loop_var in (*fold.axes.fixed, *fold.axes.ending):
        return None
    if end is None:
        span = span_of(loop, cuts, [cut.extent for cut in cuts])
    else:
        span = _covered(loop, cuts, end)
    return span.as_even if span is not None and all(found.sizes == {span.step} for found in keys) else None


def _covered(loop: ForStmt, cuts: Sequence[Cut], end: End) -> Span | None:
    """Return what a fold covers that ends with its rows: elements after those are hidden, to the end of a tensor."""
    step = as_extent(loop.step)
    is_plain = all(cut.times == 1 and not cut.is_padded for cut in cuts)
    if not isinstance(step, int) or not is_plain:
        return None
    return Span(0, loop.stop, step, end.limit if isinstance(end.limit, int) else None, False)


def _end(fold: OnlineFold) -> End | None:
    """Return where a fold ends that ends with its rows, if it would see nothing new after them."""
    extents = {cut.extent for found in fold.keys for cut in found.cuts}
    stop, limits = fold.loop.stop, list[Expr]()
    if isinstance(stop, Call) and stop.op.spec.name == "min":
        limits = [x for x in stop.args if as_extent(x) is not None]
        stop = next((x for x in stop.args if as_extent(x) is None), stop)
    found = _after(stop)
    if found is None or len(extents) != 1 or None in extents or not is_number(fold.loop.start, 0):
        return None
    row, after = found
    (limit,) = extents
    if any(as_extent(x) != limit for x in limits) or not fold.hides_after(row):
        return None
    is_inside = bool(limits) or _begins_inside(fold.loop, row, after, limit)
    is_covered = after >= _rows(fold.axes, row) and _reaches(fold.axes, row, limit)
    return End(row, after, limit) if is_inside and is_covered else None


def _begins_inside(loop: ForStmt, row: Var, after: int, limit: Extent) -> bool:
    """Return whether the last piece surely begins within its tensors: one that does not is an error of the program."""
    step, reach = as_extent(loop.step), row.bounds
    if not isinstance(step, int) or not isinstance(limit, int) or reach is None:
        return False
    return (reach[1] + after - 1) // step * step < limit


def _after(stop: Expr) -> tuple[Var, int] | None:
    """Return a variable and how much is added to it."""
    if not isinstance(stop, Call) or stop.op.spec.name != "add":
        return None
    for var, number in (stop.args, stop.args[::-1]):
        if isinstance(var, Var) and isinstance(number, ConstInt):
            return var, int(number.value)
    return None


def _rows(axes: TileAxes, row: Var) -> int:
    return max((size for found in axes.cut_by(row) for size in found.sizes), default=0)


def _reaches(axes: TileAxes, row: Var, limit: Extent) -> bool:
    """Return whether there are as many rows as elements that they fold: the last is seen by somebody."""
    return any(cut.extent == limit for found in axes.cut_by(row) for cut in found.cuts)
