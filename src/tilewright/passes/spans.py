"""Spans: what the turns of a loop cover of the tensors that they cut, and in which other steps they could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.expr import Expr, integer
from tilewright.core.extents import as_extent
from tilewright.core.stmt import ForStmt
from tilewright.core.types import Extent
from tilewright.passes.tile_axes import Cut
from tilewright.records import record

NEAR = (0.7, 1.15)
"""Which share of the wanted step one may be that divides the span evenly."""


@record
class Span:
    """Elements from `start` to `stop`, which other steps cover just as well.

    An `exact` span ends within its tensors: only steps that divide it end there, too. Others are cut by the tensors.
    """

    start: int
    stop: Expr
    step: int
    length: int | None
    exact: bool

    @property
    def as_even(self) -> Span | None:
        """The same, of which other steps leave a rest only if its own do; None where nobody knows whether they do."""
        return None if self.length is None else replace(self, exact=self.exact or self.length % self.step == 0)

    @property
    def as_whole(self) -> Span | None:
        """The same, of which no step leaves a rest; None where its own do, or nobody knows."""
        return replace(self, exact=True) if self.length is not None and self.length % self.step == 0 else None

    def in_shorter(self, step: int) -> Span:
        """Return the same in steps no larger than one, but as it is where an exact one would have a rest then."""
        leaves_none = self.length is not None and self.length % step == 0
        return replace(self, step=min(self.step, step)) if leaves_none or not self.exact else self

    def steps(self, step: int) -> int:
        """Return how many steps there are at least."""
        return 1 if self.length is None else -(-self.length // step)

    def wider(self, wanted: int, even: int, grain: int) -> int:
        """Return a step of about the wanted size, never less than there is unless a step covers all.

        One that leaves no rest is best, if it is a multiple of `even`; others are multiples of `grain`.
        """
        length = self.length
        if length is not None and 0 < length <= max(wanted, self.step):
            return length
        if self.step >= wanted or length is None:
            return max(self.step, wanted)
        low, high = (int(wanted * share) for share in NEAR)
        parts = [length // n for n in range(1, length // self.step + 1) if length % n == 0]
        fitting = [size for size in parts if low <= size <= high and size % even == 0]
        if fitting:
            return min(fitting, key=lambda size: abs(size - wanted))
        if self.exact:
            return max([size for size in parts if size <= wanted], default=self.step)
        return max(self.step, -(-length // self.steps(wanted) // grain) * grain)

    def fuller(self, step: int, grain: int) -> int:
        """Return a multiple of a grain near a step whose turns hang over less, where that is an eighth of them all.

        Attention of 65 queries takes an Emerald Rapids 1.5 ms in one tile of 80, and 2.35 in two of 64.
        """
        if self.exact or self.length is None:
            return step
        near = range(-(-step // 2 // grain) * grain, 2 * step + 1, grain)
        best = min(near, key=lambda size: (self.steps(size) * size, abs(size - step)), default=step)
        return best if 8 * self.steps(best) * best <= 7 * self.steps(step) * step else step


def span_of(loop: ForStmt, cuts: Sequence[Cut], extents: Sequence[Extent], first: int | None = None) -> Span | None:
    """Return what a loop covers of axes that go so far, where other steps may; None where only its own do.

    Turns that begin before the loop, from `first` on, belong to it.
    """
    start, stop, step = (as_extent(x) for x in (loop.start, loop.stop, loop.step))
    times, is_padded = {cut.times for cut in cuts if cut.offset is loop.loop_var}, any(cut.is_padded for cut in cuts)
    if not isinstance(start, int) or not isinstance(step, int) or step < 1 or stop is None or len(times) != 1:
        return None
    (by,) = times
    if by > 1 and not isinstance(stop, int):
        return None
    if isinstance(stop, int):
        return _known(range(by * start, by * stop, by * step), extents, is_padded, first)
    begin = start if first is None else first
    return Span(begin, loop.stop, step, None, False) if set(extents) == {stop} and not is_padded else None


def _known(turns: range, extents: Sequence[Extent], is_padded: bool, first: int | None) -> Span | None:
    """Return what turns cover that begin where somebody has said."""
    known = {extent for extent in extents if isinstance(extent, int)}
    if not turns or len(known) < len(set(extents)):
        return None
    begin, covered = turns[0] if first is None else first, turns[-1] + turns.step
    if min(known) >= covered:
        exact = is_padded or known != {covered}
        return Span(begin, integer(covered), turns.step, covered - begin, exact)
    (most, *others) = known
    is_cut = not others and not is_padded and turns[-1] < most
    return Span(begin, integer(most), turns.step, most - begin, False) if is_cut else None
