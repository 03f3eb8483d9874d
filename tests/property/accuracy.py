"""Accuracy: how far native code may be from the interpreter, found out by moving results within what ops declare.

Nobody can say in advance how far apart two runs of a random program may end: an error of one unit in the last place
grows, vanishes or tips a comparison over, depending on what follows. So a program is interpreted again and again, each
result of an inexact op moved at random by up to its declared `ulp`. Where that changes nothing, native code has to give
the very same bits; elsewhere it has to stay close to what those runs give. Most programs agree at once, and none of
this happens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ops.kernels import Array
from ops.native import distance
from property.running import Outcome, outcome

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr
from tilewright.core.program import Program
from tilewright.core.region import Region
from tilewright.dtypes import round_to
from tilewright.interpret.evaluator import Frame
from tilewright.interpret.machine import Machine

TRIES = 64
"""How many runs with moved results may show what is possible before a difference counts as wrong."""

LARGEST = 1e36
"""Beyond this, sums and products of floats may leave the range of fp32 on the way."""

EXTREMES = ("row_max", "row_min")
"""Folds that of zeros of both signs give either."""

SLACK = 1.0
"""How far beyond the runs seen a result may lie, in units of how far they lie apart."""


class Blurred(Machine):
    """Runs a program with every result of an inexact op moved by up to what the op declares.

    Every other run moves all results of an op as far as they go, one way: what several ops may add up to is hardly ever
    seen when each element goes its own.
    """

    def __init__(self, program: Program, seed: int = 0) -> None:
        super().__init__(program)
        self.rng = np.random.default_rng(seed)
        self.goes_far = seed % 2 == 1

    def _call(self, frame: Frame, call: Call) -> Any:
        result = super()._call(frame, call)
        spec = call.op.spec
        if not (spec.ulp or spec.name in EXTREMES) or not isinstance(result, Region) or not result.dtype.is_float():
            return result
        bound = {name: self._value(frame, value) for name, value in arguments(call).items()}
        if spec.name in EXTREMES:
            either = _has_both_zeros(bound["x"].live) & (result.live == 0)
            result.live[either] = self.rng.choice([0.0, -0.0])
            return result
        live, steps = result.live, self._steps(spec.ulp, result.live.shape)
        with np.errstate(all="ignore"):
            size = _size(call, bound, result)
            moved = self._moved(live.astype(np.float64), steps * distance(size, live.dtype))
            anything = self.rng.choice([np.nan, np.inf, -np.inf], live.shape)
            live[...] = round_to(np.where(size > LARGEST, anything, moved), result.dtype)
        return result

    def _steps(self, ulp: float, shape: tuple[int, ...]) -> Array:
        if self.goes_far:
            return np.full(shape, self.rng.choice([-ulp, ulp]))
        return self.rng.uniform(-ulp, ulp, shape)

    def _moved(self, exact: Array, steps: Array) -> Array:
        """Return results moved by steps; one that terms cancel out to may come out as any smaller number, or none.

        Even steps would hardly ever make it as small as the terms that are left in another order of adding.
        """
        is_lost = (np.abs(exact) <= np.abs(steps)) & (self.rng.random(exact.shape) < 0.5)
        left = np.exp2(-self.rng.uniform(0, 16, exact.shape)) * (self.rng.random(exact.shape) < 0.75)
        return np.where(is_lost, steps * left, exact + steps)

    def _value(self, frame: Frame, value: object) -> Any:
        return self.value(frame, value) if isinstance(value, Expr) else value


def _size(call: Call, bound: dict[str, Any], result: Region) -> Array:
    """Return what a result's units are taken of: the result itself, or for a sum the sum of its terms' magnitudes.

    It is infinite where the order of sums or products decides whether they stay within the range of floats.
    """
    size = np.abs(result.live.astype(np.float64))
    spec = call.op.spec
    if spec.combine == "add" or spec.family == "structured":
        terms = {name: _magnitudes(value) if isinstance(value, Region) else value for name, value in bound.items()}
        return spec.evaluate(call.type, **terms).live.astype(np.float64)
    if spec.combine == "multiply":
        factors = np.abs(bound["x"].live.astype(np.float64))
        axis = bound.get("axis", -1 if spec.name.startswith("row") else -2)
        reach = np.maximum(factors, 1) / np.where(factors > 0, np.minimum(factors, 1), 1)
        return np.where(np.prod(reach, axis, keepdims=True) > LARGEST, np.inf, size)
    return size


def _has_both_zeros(rows: Array) -> Array:
    """Return which rows hold zeros of both signs."""
    is_zero, is_signed = rows == 0, _is_signed(rows)
    return np.any(is_zero & is_signed, -1, keepdims=True) & np.any(is_zero & ~is_signed, -1, keepdims=True)


def _magnitudes(region: Region) -> Region:
    return Region(np.abs(region.data), region.valid)


class Envelope:
    """What one array may hold: for each element the least and the largest number that any run gave."""

    def __init__(self, exact: Array) -> None:
        self.exact = exact
        self.low: Array = exact
        self.high: Array = exact
        self.wild: Array = np.zeros(exact.shape, bool)
        """Where runs did not agree on whether there is a number at all: of those that are none, NaN is another kind."""
        self.unsigned: Array = np.zeros(exact.shape, bool)
        """Where they did not agree on the sign of a zero."""

    def widen(self, seen: Array) -> None:
        """Let another run's results be possible, too."""
        self.wild |= (_is_number(seen) != _is_number(self.exact)) | (_is_nan(seen) != _is_nan(self.exact))
        self.unsigned |= (seen == 0) & (self.exact == 0) & (_is_signed(seen) != _is_signed(self.exact))
        with np.errstate(all="ignore"):
            self.low, self.high = np.fmin(self.low, seen), np.fmax(self.high, seen)

    def wrong(self, ours: Array) -> Array:
        """Return where an array holds something else than any run suggests."""
        low, high, exact, x = (a.astype(np.float64) for a in (self.low, self.high, self.exact, ours))
        same = (ours == self.exact) & (np.signbit(x) == np.signbit(exact)) | np.isnan(x) & np.isnan(exact)
        same |= self.unsigned & (ours == 0)
        with np.errstate(all="ignore"):
            room = SLACK * (high - low)
            near = (high > low) & (low - room <= x) & (x <= high + room)
        return ~(same | self.wild | near)


def _is_signed(values: Array) -> Array:
    return np.signbit(values.astype(np.float64))


def _is_number(values: Array) -> Array:
    return np.isfinite(values.astype(np.float64))


def _is_nan(values: Array) -> Array:
    return np.isnan(values.astype(np.float64))


def arrays(result: Outcome) -> list[Array]:
    """Return everything an outcome holds as arrays."""
    return [*result.tensors, *(np.asarray(scalar) for scalar in result.scalars)]


def assert_within_declared_accuracy(program: Program, seed: int, ours: Outcome, exact: Outcome) -> None:
    """Fail unless what a program left is what the interpreter leaves, or what inexact ops may make of it."""
    envelopes = [Envelope(array) for array in arrays(exact)]
    for attempt in range(TRIES):
        if not any(e.wrong(a).any() for e, a in zip(envelopes, arrays(ours), strict=True)):
            return
        seen = outcome(program, seed, lambda program, attempt=attempt: Blurred(program, attempt))
        for envelope, array in zip(envelopes, arrays(seen), strict=True):
            envelope.widen(array)
    report = [_report(i, e, a) for i, (e, a) in enumerate(zip(envelopes, arrays(ours), strict=True))]
    assert not any(report), "\n".join(filter(None, report))


def _report(position: int, envelope: Envelope, ours: Array) -> str:
    wrong = envelope.wrong(ours)
    if not wrong.any():
        return ""
    at: tuple[Any, ...] = tuple(np.argwhere(wrong)[0])
    span = f"{envelope.low[at]!r} to {envelope.high[at]!r}"
    return (
        f"result {position}, {ours.dtype}: {int(wrong.sum())} of {wrong.size} differ, first at {tuple(map(int, at))}: "
        f"native {ours[at]!r}, interpreter {envelope.exact[at]!r}, within accuracy {span}"
    )
