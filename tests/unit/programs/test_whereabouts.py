"""Whereabouts: who waits for whom in a run is told so where that is so, however late messages are."""

from __future__ import annotations

import os

import pytest

from tilewright.programs.distributed.segments import Control, Segment
from tilewright.programs.distributed.whereabouts import Whereabouts

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="segments are made where Linux does")


class Memory:
    """What one process knows of each, and what it would tell."""

    def __init__(self, ranks: int = 2, *, is_shared: bool = False) -> None:
        self.segments = [Segment.made(0) for _ in range(ranks)]
        self.is_shared = is_shared
        self.told = 0
        for segment in self.segments:
            segment.close()

    def come(self, rank: int, meeting: int) -> None:
        self.segments[rank].words[Control.EPOCH] = meeting

    def hear(self, rank: int, other: Memory) -> None:
        """Take what another process says of itself."""
        for word in (Control.EPOCH, Control.ELSEWHERE):
            self.segments[rank].words[word] = other.segments[rank].words[word]

    def beat(self) -> None:
        self.told += 1


def test_one_that_waits_is_alone_once_the_other_says_that_it_is_elsewhere_all_the_same() -> None:
    here, there = Memory(), Memory()
    here.come(0, 1)
    Whereabouts(1, there).leave(True)
    here.hear(1, there)
    assert not Whereabouts(0, here).is_alone()  # it may have come back by now
    there.hear(0, here)
    Whereabouts(1, there).remind()
    here.hear(1, there)
    assert Whereabouts(0, here).is_alone()
    Whereabouts(1, there).leave(False)
    here.hear(1, there)
    assert not Whereabouts(0, here).is_alone()


def test_one_that_is_heard_to_have_been_elsewhere_is_waited_for_in_the_next_run() -> None:
    here, there = Memory(), Memory()
    for memory in (here, there):
        memory.come(0, 2)
        memory.come(1, 2)
    Whereabouts(1, there).leave(True)
    here.hear(1, there)
    here.come(0, 3)
    assert not Whereabouts(0, here).is_alone()


def test_those_who_have_been_where_one_waits_are_not_told_that_it_never_comes() -> None:
    here, there = Memory(3), Memory(3)
    here.come(0, 1)
    there.hear(0, here)
    Whereabouts(1, there).leave(True, lambda: [2])
    here.hear(1, there)
    assert not Whereabouts(0, here).is_alone()
    Whereabouts(1, there).leave(True, lambda: [0, 2])
    here.hear(1, there)
    assert Whereabouts(0, here).is_alone()


def test_where_memory_is_shared_one_word_is_enough() -> None:
    memory = Memory(is_shared=True)
    Whereabouts(1, memory).leave(True)
    memory.come(0, 1)
    assert Whereabouts(0, memory).is_alone()
    Whereabouts(1, memory).leave(False)
    assert not Whereabouts(0, memory).is_alone()


def test_nobody_is_reminded_by_one_who_is_there_or_for_whom_nobody_waits() -> None:
    memory = Memory()
    whereabouts = Whereabouts(1, memory)
    whereabouts.remind()
    whereabouts.leave(True)
    whereabouts.remind()
    assert memory.told == 1
    memory.come(0, 1)
    whereabouts.remind()
    assert memory.told == 2


def test_one_that_has_left_a_run_for_good_need_not_hear_who_waits_for_it() -> None:
    here, there = Memory(), Memory()
    Whereabouts(1, there).leave_for_good()
    here.come(0, 1)
    here.hear(1, there)
    assert Whereabouts(0, here).is_alone()
