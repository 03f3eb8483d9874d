"""Works: a rank waits for what torch does, and looks meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.torch_works import until_done


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
