"""Contests: the fastest wins, and the slow ones are not measured for long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle

from tilewright.tune.contest import LEAST, MOST, PATIENCE, best, contest


def taking(*seconds: float) -> Callable[[], float]:
    times: Iterator[float] = cycle(seconds)
    return lambda: next(times)


def test_the_smallest_median_wins() -> None:
    times = contest([taking(1.1e-6), taking(1e-6, 1e-6, 9e-6), taking(1.05e-6)])
    assert best(times) == 1
    assert [len(each) for each in times] == [MOST] * 3


def test_who_is_clearly_slower_leaves_early() -> None:
    times = contest([taking(1e-3), taking(2e-3), taking(1.2e-3)])
    assert [len(each) for each in times] == [LEAST, 2, LEAST]
    assert best(times) == 0


def test_short_runs_have_more_chances() -> None:
    times = contest([taking(9e-6, 9e-6, 9e-6, 1e-6), taking(2e-6)])
    assert best(times) == 1 and [len(each) for each in times] == [MOST, MOST]
    assert [len(each) for each in contest([taking(1e-6), taking(2e-6)])] == [PATIENCE, PATIENCE]


def test_one_slow_run_throws_nobody_out() -> None:
    times = contest([taking(2e-6), taking(9e-6, 1e-6, 1e-6, 1e-6)])
    assert best(times) == 1


def test_runs_that_take_long_are_few() -> None:
    assert [len(each) for each in contest([taking(1.0), taking(1.2)])] == [2, 2]
    assert [len(each) for each in contest([taking(3.0)])] == [1]
    assert sum(len(each) for each in contest([taking(1e-3), taking(1.05e-3)])) <= 2 * MOST


def test_all_take_turns() -> None:
    order: list[int] = []
    contest([lambda place=place: order.append(place) or 1.0 for place in range(3)])
    assert order == [0, 1, 2, 1, 2, 0]
