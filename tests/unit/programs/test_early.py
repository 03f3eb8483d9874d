"""Early messages: what others send of a run that this process has not begun waits for it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from tilewright.programs.distributed.early import Early
from tilewright.programs.distributed.segments import Control, Segment

BYTES: Any = np.arange(4, dtype=np.uint8)
pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="segments are made where Linux does")


def other_at(meeting: int) -> Segment:
    """Return what another process has said of itself that has come to a meeting."""
    segment = Segment.made(0)
    segment.close()
    segment.words[Control.EPOCH] = meeting
    return segment


def test_what_is_changed_ahead_of_a_run_is_a_part_of_it() -> None:
    early, data = Early(), BYTES.copy()
    assert early.held(other_at(0), 1, 2, data)
    data[...] = 0  # as the room of a message is used again
    ((position, count, found),) = early.begun()
    assert (position, count, found.tolist()) == (1, 2, BYTES.tolist())
    assert not early.begun()


def test_what_is_changed_by_one_who_is_still_in_the_run_is_there_at_once() -> None:
    early = Early()
    early.begun()
    assert not early.held(other_at(0), 0, 2, BYTES)
    assert not early.held(other_at(1), 0, 2, BYTES)
    assert early.held(other_at(2), 0, 2, BYTES)  # it has come to the end of this run: that is of the next


def test_the_end_of_the_next_run_leaves_this_one_to_go_on() -> None:
    early = Early()
    early.begun()
    assert early.ended(3, run=2) == 0
    assert early.over() == 3
    assert early.over() == 0


def test_the_end_of_a_run_is_there_at_once_for_those_who_are_in_it_or_in_none() -> None:
    early = Early()
    assert early.run == 1 and early.ended(2, run=1) == 2
    early.begun()
    assert early.run == 1 and early.ended(2, run=1) == 2
    early.over()
    assert early.run == 2 and early.ended(2, run=2) == 2
