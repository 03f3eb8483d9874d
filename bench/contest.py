"""Contests: the same work done by several contenders, checked first and then timed in turns.

A contest is one row of the results. Its contenders share their inputs and write to outputs of their own that exist
before the clock starts; one that gives a wrong result is an error. They then take turns, and what counts is the ratio
of two contenders within a round: the machine may be slow for a minute, and is so for both.
"""

from __future__ import annotations

import gc
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import torch
from harness import Timing, interleaved, median, timed

Run: TypeAlias = Callable[[], torch.Tensor]
Clock: TypeAlias = Literal["cpu", "wall"]
OURS, EAGER, INDUCTOR = "tilewright", "torch eager", "torch.compile"
FEWEST_CLEAN = 5
"""How many rounds without interruptions a wall-clock ratio wants; with fewer it takes all rounds and says so."""


@dataclass(frozen=True)
class Missing:
    """A contender that cannot run here, and why."""

    reason: str


@dataclass(frozen=True)
class Work:
    """What one call moves to and from memory, or computes."""

    bytes: int = 0
    flops: int = 0

    def rate(self, milliseconds: float) -> str:
        """Return how fast that is in so much time: GFLOP/s where operations are counted, GB/s where bytes are."""
        per_second = (self.flops or self.bytes) / milliseconds / 1e6
        return f"{per_second:.1f} {'GFLOP/s' if self.flops else 'GB/s'}"


@dataclass(frozen=True)
class Field:
    """Who takes part, ready to run, and the result that each of them must give."""

    expected: torch.Tensor
    contenders: Mapping[str, Run | Missing]
    rtol: float = 1.3e-6
    atol: float = 1e-5

    @property
    def missing(self) -> dict[str, str]:
        """Who does not take part, and why."""
        return {who: entry.reason for who, entry in self.contenders.items() if isinstance(entry, Missing)}

    @property
    def runs(self) -> dict[str, Run]:
        """Who does."""
        return {who: entry for who, entry in self.contenders.items() if not isinstance(entry, Missing)}


@dataclass(frozen=True)
class Contest:
    """One row: who is measured against whom at which work, and the ratio wanted.

    `enter` makes the contenders, once per number of threads; contests of a group share a table. Work of less than a
    millisecond asks for several `calls` per sample; `most_rounds` spares us too many of a slow one.
    """

    name: str
    enter: Callable[[], Field]
    work: Work
    target: float | None = None
    note: str = ""
    group: str = "Against torch"
    subject: str = OURS
    against: str = EAGER
    calls: int = 1
    most_rounds: int = 1000


class Ratio(NamedTuple):
    """How many times faster one contender is than another: the median round and the quartiles around it."""

    low: float
    middle: float
    high: float
    clean: bool = True

    def __str__(self) -> str:
        return f"{self.middle:.2f}x{'' if self.clean else ' *'}"


@dataclass(frozen=True)
class Outcome:
    """What became of a contest on so many threads."""

    contest: Contest
    threads: int
    timings: Mapping[str, Sequence[Timing]]
    missing: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def clock(self) -> Clock:
        """The clock that counts: one thread's processor time is its own whoever else is busy, two threads' is not."""
        return "cpu" if self.threads == 1 else "wall"

    def milliseconds(self, who: str) -> float:
        """Return what a call takes in the median."""
        return getattr(median(self.timings[who]), self.clock)

    def ratio(self, who: str, against: str, clock: Clock | None = None) -> Ratio:
        """Return how many times faster `who` is, round by round."""
        clock = clock or self.clock
        rounds = [*zip(self.timings[who], self.timings[against], strict=True)]
        clean = [pair for pair in rounds if not any(t.interruptions for t in pair)]
        enough = len(clean) >= FEWEST_CLEAN
        counted = clean if enough and clock == "wall" else rounds
        ratios = [getattr(b, clock) / getattr(a, clock) for a, b in counted]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        return Ratio(low, middle, high, enough or clock == "cpu")


def hold(contest: Contest, threads: int, rounds: int, tick: Callable[[], object]) -> Outcome:
    """Return how a contest ends on so many threads; AssertionError names the contender that is wrong."""
    use_threads(threads)
    entered = contest.enter()
    for who, run in entered.runs.items():
        _check(f"{contest.name}: {who}", run(), entered)
    gc.freeze()  # torch.compile leaves much behind, and each sample starts with a collection
    cases = {who: partial(timed, run, contest.calls) for who, run in entered.runs.items()}
    return Outcome(contest, threads, interleaved(cases, rounds, tick=tick), entered.missing)


def use_threads(threads: int) -> None:
    """Have every contender made from now on run on so many threads."""
    torch.set_num_threads(threads)
    os.environ["TILEWRIGHT_NUM_THREADS"] = str(threads)


def _check(who: str, result: torch.Tensor, entered: Field) -> None:
    torch.testing.assert_close(
        result, entered.expected, rtol=entered.rtol, atol=entered.atol, msg=lambda text: f"{who} is wrong. {text}"
    )
