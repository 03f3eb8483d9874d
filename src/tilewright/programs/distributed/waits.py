"""Waits: the words by which native waits of this process's ranks are ended, and by which one knows that they last."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Mapping, Sequence
from time import monotonic
from typing import Any

from tilewright.native.domains import NAPS, SLEEPS

WORDS = 16
"""How many words a rank has: two lines of the cache."""

_Seen = tuple[tuple[int, ...], tuple[int, ...], list[int]]


class Waits:
    """The words of all ranks: one not 0 once the run is over, and what `native/domains.py` counts behind it."""

    def __init__(self, ranks: int, words: Any = None) -> None:
        self._words = (ctypes.c_int64 * (WORDS * ranks))() if words is None else words
        self.aborts = {rank: ctypes.addressof(self._words) + 8 * WORDS * rank for rank in range(ranks)}
        self.may_look = True
        """Whether a rank that sleeps does nothing else: it has one thread, or no turns side by side."""
        self._looks = Looks()

    def begin(self) -> None:
        """Make ready for a run."""
        ctypes.memset(self._words, 0, ctypes.sizeof(self._words))
        self._looks = Looks()

    def each(self) -> dict[Hashable, tuple[object, float]]:
        """Return of every rank which native wait it is in, if any, and how often it has slept."""
        sleeps, naps = self._words[SLEEPS::WORDS], self._words[NAPS::WORDS]
        return {rank: wait for rank, wait in enumerate(zip(sleeps, naps, strict=True))}

    def end(self) -> None:
        """Let all waits be over."""
        for start in range(0, len(self._words), WORDS):
            self._words[start] = 1

    @property
    def is_over(self) -> bool:
        """Whether the run was ended."""
        return bool(self._words[0])

    def are_in_vain(self, left: int, turns: tuple[int, ...]) -> bool:
        """Return whether so many ranks, all that could do anything, have slept in the same waits for three looks."""
        return self.may_look and self._looks.are_in_vain(
            self._words[SLEEPS::WORDS], self._words[NAPS::WORDS], left, turns
        )


class Patience:
    """For how long ranks have been in one and the same wait: the time that they compute is none."""

    def __init__(self) -> None:
        self._waits: dict[Hashable, tuple[object, float, float, float]] = {}

    def longest(self, waits: Mapping[Hashable, tuple[object, float]]) -> float:
        """Return the seconds of the longest wait, given for everyone which wait it is and a number that grows in it."""
        now = monotonic()
        seen = {who: self._waits.get(who) for who in waits}
        self._waits = {who: _lasting(seen[who], *wait, now) for who, wait in waits.items()}
        return max((last - since for _, since, last, _ in self._waits.values()), default=0.0)


def _lasting(
    before: tuple[object, float, float, float] | None, wait: object, ticks: float, now: float
) -> tuple[object, float, float, float]:
    """Return a wait, when it began, when it was last seen to go on, and the number that said so."""
    if before is None or before[0] != wait:
        return wait, now, now, ticks
    _, since, last, seen = before
    return wait, since, now if ticks > seen else last, ticks


class Looks:
    """What one who looks on has seen of ranks that wait."""

    def __init__(self) -> None:
        self._seen: list[_Seen] = []

    def are_in_vain(self, sleeps: Sequence[int], naps: Sequence[int], left: int, turns: tuple[int, ...]) -> bool:
        """Return whether so many ranks, all that could do anything, have slept in the same waits for three looks.

        Each has then looked at its cell after all had begun to sleep, and found nothing; `turns` are those that were.
        """
        asleep = [rank for rank, number in enumerate(sleeps) if number % 2]
        if not asleep or len(asleep) != left:
            self._seen = []
            return False
        now = tuple(sleeps), turns, [naps[rank] for rank in asleep]
        if self._seen and not _is_later(self._seen[-1], now):
            same = self._seen[-1][:2] == now[:2]
            self._seen = self._seen if same else [now]  # those that have not slept since may see what came last
            return False
        self._seen.append(now)
        return len(self._seen) > 2  # noqa: PLR2004


def _is_later(before: _Seen, now: _Seen) -> bool:
    """Return whether all ranks sleep where they did, and have looked again."""
    looked = all(new >= old + 2 for old, new in zip(before[2], now[2], strict=False))
    return before[:2] == now[:2] and looked
