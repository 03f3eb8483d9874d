"""Held puts: what goes together, and what leaves before what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tilewright.errors import ExecutionError
from tilewright.programs.distributed.held_puts import LONG, HeldPuts

SENT = list[tuple[int, list[int], list[int]]]


@pytest.fixture
def sent() -> SENT:
    """What has left, in order: for whom, its numbers and its bytes."""
    return []


@pytest.fixture
def puts(sent: SENT) -> HeldPuts:
    def send(rank: int, numbers: Sequence[int], data: Any) -> None:
        sent.append((rank, [*numbers], [] if data is None else [*map(int, data[:2])]))

    return HeldPuts(send)


def test_a_put_leaves_with_the_signal_behind_it_as_it_was(puts: HeldPuts, sent: SENT) -> None:
    data = np.array([7, 8], np.uint8)
    puts.put(1, [2, 5], data)
    data[:] = 0
    assert sent == []
    puts.signal(1, [4, 6])
    puts.signal(1, [4, 7])
    assert sent == [(1, [2, 5, 4, 6], [7, 8]), (1, [4, 7], [])]


def test_a_put_leaves_before_what_goes_to_another_rank(puts: HeldPuts, sent: SENT) -> None:
    puts.put(1, [2], np.ones(2, np.uint8))
    puts.put(2, [3], np.ones(2, np.uint8))
    assert sent == [(1, [2], [1, 1])]
    puts.signal(3, [4])
    assert sent[1:] == [(2, [3], [1, 1]), (3, [4], [])]


def test_a_put_stays_for_the_ranks_that_are_told_next_alone(puts: HeldPuts, sent: SENT) -> None:
    puts.put(1, [2], np.ones(2, np.uint8))
    puts.leave(frozenset((1,)))
    assert sent == []
    puts.leave(frozenset((2,)))
    puts.leave()
    assert sent == [(1, [2], [1, 1])]


def test_a_put_that_nothing_follows_leaves_when_somebody_looks(puts: HeldPuts, sent: SENT) -> None:
    puts.put(1, [2], np.ones(2, np.uint8))
    puts.look_on()
    puts.look_on()
    assert sent == [(1, [2], [1, 1])]


def test_a_rank_that_has_ended_is_no_mistake_of_who_looks() -> None:
    def send(rank: int, numbers: Sequence[int], data: Any) -> None:
        raise ExecutionError("the process of rank 1 has ended")

    puts = HeldPuts(send)
    puts.put(1, [2], np.ones(2, np.uint8))
    puts.look_on()


def test_a_long_put_is_on_its_way_at_once(puts: HeldPuts, sent: SENT) -> None:
    puts.put(1, [2], np.ones(LONG + 1, np.uint8))
    assert sent == [(1, [2], [1, 1])]


def test_a_put_that_cannot_leave_is_sent_once(sent: SENT) -> None:
    def send(rank: int, numbers: Sequence[int], data: Any) -> None:
        sent.append((rank, [*numbers], []))
        raise OSError

    puts = HeldPuts(send)
    puts.put(1, [2], np.ones(2, np.uint8))
    with pytest.raises(OSError):
        puts.leave()
    puts.leave()
    assert sent == [(1, [2], [])]
