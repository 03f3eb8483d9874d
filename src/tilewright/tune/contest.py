"""Contests: which of several runs is fastest, found without measuring the slow ones for long.

All that are still in take turns, so that whatever the machine does meanwhile happens to each of them. Who is clearly
slower than the best one leaves early; those that are left are told apart by their medians.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

LEAST, MOST = 5, 100
"""How many rounds there are, unless time is up or nobody but the best is left."""

SECONDS = 0.15
"""How long those that are still in are measured, each of them."""

FIRST_LOOK, CLEARLY, NEARLY = 2, 1.5, 1.1
"""After so many rounds whoever takes longer than the best by the first factor leaves, and by the second at the end."""

ENOUGH, PATIENCE = 2e-3, 20
"""How many seconds somebody has been measured who leaves, or in how many rounds: short runs are easily disturbed."""

Timed = Callable[[], float]
"""Runs something once, and returns how many seconds that took."""

Watched = Callable[[Sequence["list[float]"]], None]
"""Is shown the times so far after each round."""


def contest(runs: Sequence[Timed], watched: Watched = lambda _: None) -> list[list[float]]:
    """Return the times of each run, in seconds; those that were measured to the end have the most."""
    times: list[list[float]] = [[] for _ in runs]
    left = list(range(len(runs)))
    spent = 0.0
    for round in range(MOST):
        for place in left[round % len(left) :] + left[: round % len(left)]:
            times[place].append(runs[place]())
            spent += times[place][-1]
        watched(times)
        left = _left(times, left, round + 1)
        is_over = spent > SECONDS * len(left) and round + 1 >= FIRST_LOOK
        if (len(left) == 1 or is_over) and (round + 1 >= LEAST or spent > SECONDS * len(runs)):
            break
    return times


def best(times: Sequence[Sequence[float]]) -> int:
    """Return which run is fastest by its median, of those that were measured for longest."""
    most = max(map(len, times))
    return min((place for place, each in enumerate(times) if len(each) == most), key=lambda place: median(times[place]))


def _left(times: Sequence[Sequence[float]], left: Sequence[int], rounds: int) -> list[int]:
    """Return who of those that are in stays: whoever was once nearly as fast as the best usually is."""
    if rounds < FIRST_LOOK:
        return list(left)
    factor = CLEARLY if rounds < LEAST else NEARLY
    limit = factor * min(median(times[place]) for place in left)
    new = {place for place in left if rounds < PATIENCE and sum(times[place]) < ENOUGH}
    return [place for place in left if place in new or min(times[place]) <= limit]
