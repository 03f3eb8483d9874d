"""Works: a rank waits for what torch does, and looks meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.segments import Control, Segment
from tilewright.programs.distributed.torch_works import Swaps, until_done


class Work:
    """A collective that takes too long so many times, and comes to its end, well or not, in the last of them."""

    def __init__(self, times: int, error: str = "") -> None:
        self.times = times
        self.error = error

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self.times:
            assert timeout is not None, "somebody would wait without a look"
            self.times -= 1
            raise RuntimeError("it takes too long")
        if self.error:
            raise RuntimeError(self.error)
        return True

    def is_completed(self) -> bool:
        return not self.times


def waited(work: Work) -> int:
    """Return how often a rank has looked that waits."""
    looks: list[int] = []
    until_done([0, 1], lambda: looks.append(1), work)
    return len(looks)


def ending() -> None:
    raise Ended("it waits for rank 1")


@pytest.mark.parametrize(("times", "looks"), [(0, 0), (1, 0), (2, 1), (4, 3)])
def test_what_comes_to_its_end_just_behind_the_time_of_a_look_is_done(times: int, looks: int) -> None:
    assert waited(Work(times)) == looks


@pytest.mark.parametrize("times", [0, 1, 3])
def test_what_fails_says_why_the_others_have_given_up(times: int) -> None:
    with pytest.raises(Ended, match="it waits for rank 1"):
        until_done([0, 1], ending, Work(times, "connection closed"))


class Message:
    """A message of torch's that comes once its group has given up all, which one that takes too long brings about."""

    def __init__(self, given_up: threading.Event) -> None:
        self._given_up = given_up

    def wait(self, timeout: timedelta | None = None) -> None:
        if timeout is not None:
            self._given_up.set()
        assert self._given_up.wait(20)
        raise RuntimeError("the group was given up")


class Three:
    """A process group of three of which one has ended, and another sends nothing."""

    def __init__(self) -> None:
        self.waited = threading.Event()
        self._given_up = threading.Event()

    def rank(self) -> int:
        return 0

    def size(self) -> int:
        return 3

    def recv(self, tensors: list[Any], source: int, tag: int) -> Message:
        if source == 1:
            raise RuntimeError("connection closed by peer")
        return Message(self._given_up)


def swapping(swaps: Swaps, group: Three, look: Callable[[], None]) -> list[BaseException]:
    """Have another thread wait for what never comes; return why it ends, once it has."""
    found: list[BaseException] = []

    def take(three: Three) -> None:
        three.waited.set()
        three.recv([], 2, 4).wait()

    def run() -> None:
        try:
            swaps.until_done([0, 1], look, group, take)
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        swaps.look()
        thread.join(0.01)
    return found


def test_who_waits_within_torch_for_another_rank_is_ended_with_the_run() -> None:
    pytest.importorskip("torch")
    group, segment = Three(), Segment.made(0)

    def look() -> None:
        if group.waited.is_set():
            segment.words[Control.ABORT] = 1
        if segment.words[Control.ABORT]:
            raise Ended("it waits for rank 1")

    (error,) = swapping(Swaps(segment), group, look)
    segment.close()
    assert isinstance(error, Ended)
    assert str(error) == "it waits for rank 1"


def test_who_comes_to_a_swap_of_a_run_that_is_over_begins_none() -> None:
    group, segment = Three(), Segment.made(0)
    segment.words[Control.ABORT] = 1
    with pytest.raises(Ended, match="it waits for rank 1"):
        Swaps(segment).until_done([0, 1], ending, group, lambda three: pytest.fail(f"begun with {three}"))
    segment.close()
