"""Foldings: the instructions that make one number of many, some of which take several at once."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.backends.cpu.compute.traced import Lanes, combine
from tilewright.native.llvm import Value
from tilewright.native.rarities import unless
from tilewright.native.terms import Term
from tilewright.records import record


def folding(name: str) -> Callable[[Lanes, Lanes], Lanes]:
    """Return the instructions that fold a row into a total, by the name of NumPy's function of both.

    Of two zeros an extreme is either: their order is that of the machine's vectors. Whether a lane is NaN is asked
    apart from the total, which waits for one instruction then and not for a comparison.
    """
    plain, intrinsic = combine(name), {"maximum": "llvm.maximum", "minimum": "llvm.minimum"}.get(name)

    def emit(total: Lanes, lane: Lanes) -> Lanes:
        if intrinsic is None or not lane.element.is_float():
            return plain(total, lane)
        return Lanes(lane.b, lane.b.intrinsic(intrinsic, lane.value, total.value, flags="nsz "), lane.element)

    return emit


@record
class Extreme:
    """The folding of floats to the largest or the smallest, where several are asked at once whether one is NaN."""

    is_beyond: str

    def __call__(self, total: Lanes, one: Lanes, other: Lanes) -> Lanes:
        """Emit the folding of two lanes into a total; both are asked for NaN at once."""
        is_nan = one.b.compare("fcmp uno", one.value, other.value)
        return self._unless(is_nan, self.of_numbers(self.of_numbers(one, other), total))

    def of_numbers(self, x: Lanes, y: Lanes) -> Lanes:
        """Emit the folding of two that are no NaN; where one is, it is the second."""
        beyond = x.b.compare(f"fcmp {self.is_beyond}", x.value, y.value)
        return Lanes(x.b, x.b.select(beyond, x.value, y.value), x.element)

    def first_of_numbers(self, x: Lanes, y: Lanes) -> Lanes:
        """Emit the same, and of two zeros the first, as NumPy has it."""
        return self.of_numbers(y, x)

    def unless_nan(self, folded: Lanes, lanes: Lanes) -> Lanes:
        """Emit what lanes are folded to: NaN where one of them is, else what they are as numbers."""
        b, is_nan = lanes.b, Term(lanes.b, lanes.value).is_nan().any()
        return Lanes(b, unless(b, is_nan, folded.value, lambda: folded.like(math.nan).value), folded.element)

    def _unless(self, is_nan: Value, number: Lanes) -> Lanes:
        return Lanes(number.b, number.b.select(is_nan, number.like(math.nan).value, number.value), number.element)


def pair_folding(name: str) -> Extreme | None:
    """Return what folds several lanes with fewer instructions than one after the other, where there is such a thing."""
    is_beyond = {"maximum": "ogt", "minimum": "olt"}.get(name)
    return None if is_beyond is None else Extreme(is_beyond)
