"""Meetings of processes over a store: who comes, who fails, and who is not there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tilewright.programs.distributed.meetings import Absent, Failed, Meetings

dist: Any = pytest.importorskip("torch.distributed")
LONG = 60.0


def members(size: int) -> list[Meetings]:
    store = dist.HashStore()
    return [Meetings(lambda: store, rank, size) for rank in range(size)]


def met(member: Meetings, data: bytes, patience: float = LONG) -> list[bytes] | str:
    """Return what a member is told at a meeting, or why it was not held."""
    try:
        return member.exchanged(data, patience, lambda: None)
    except Failed as failed:
        return f"rank {failed.rank} failed: {failed.text}"
    except Absent as absent:
        return f"absent: {[*absent.ranks]}"


def test_all_have_what_each_has_brought_at_one_meeting_after_the_other() -> None:
    group = members(3)
    with ThreadPoolExecutor(3) as threads:
        for turn in range(3):
            brought = [b"%d%d" % (rank, turn) for rank in range(3)]
            assert [*threads.map(met, group, brought)] == 3 * [brought]


def test_one_that_fails_is_told_those_that_wait_and_those_that_come_later_and_all_meet_again() -> None:
    group = members(3)
    with ThreadPoolExecutor(3) as threads:
        waiting = threads.submit(met, group[0], b"")
        group[1].fail("no")
        assert waiting.result(LONG) == met(group[2], b"") == "rank 1 failed: no"
        assert [*threads.map(met, group, 3 * [b"again"])] == 3 * [3 * [b"again"]]


def test_who_looks_before_a_meeting_is_told_who_has_failed() -> None:
    group = members(2)
    group[0].check()
    group[1].fail("no")
    with pytest.raises(Failed, match="no"):
        group[0].check()
    group[0].check()


def test_who_has_not_come_in_time_is_named() -> None:
    assert met(members(3)[1], b"", 0.01) == "absent: [0, 2]"


def test_one_that_ends_as_the_last_to_come_keeps_nobody_waiting() -> None:
    store = dist.HashStore()
    first, last = (Meetings(lambda: store, rank, 2) for rank in range(2))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(met, first, b"first")
        assert last.name == "tilewright/0"
        store.set("tilewright/0/0/1", b"last")
        assert waiting.result(LONG) == [b"first", b"last"]


def test_meetings_leave_nothing_of_those_before_the_last_in_the_store() -> None:
    store = dist.HashStore()
    group = [Meetings(lambda: store, rank, 2) for rank in range(2)]
    counts: list[int] = []
    with ThreadPoolExecutor(2) as threads:
        for _ in range(4):
            assert len([*threads.map(met, group, [b"", b""])]) == 2
            counts.append(store.num_keys())
    assert counts[1:] == 3 * [counts[1]]
