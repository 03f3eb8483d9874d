"""Traced regions: rings keep what is newest, whole and in order, whoever is at work meanwhile."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.native.threads import parallel_address
from tilewright.native.traced_regions import CALL, CAPACITY, Recorder, Ring, told

CHUNK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
PROGRAM = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)


def place(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def region(found: Recorder, work: Callable[[int], None], chunks: int) -> None:
    """Run chunks the way a traced program does."""

    def chunk(data: object, number: int) -> None:
        work(number)

    held = CHUNK(chunk)
    PARALLEL(found.address)(place(held), None, chunks, None)


def recorder(ring: Ring, threads: int = 1) -> Recorder:
    return Recorder(ring, parallel_address(threads), threads)


def taken(ring: Ring) -> tuple[Any, int]:
    """Return what was left in a ring as rows of (code, chunk, begin, end, thread), and how many are lost."""
    rows, lost = ring.taken()
    return np.stack(told(rows), axis=1), lost


@PROGRAM
def nothing(launch: object, context: object) -> None:
    """Stand for a program."""


def test_a_ring_keeps_the_newest_and_counts_what_is_lost() -> None:
    ring = Ring()
    found, at = recorder(ring), place(nothing)
    ready = found.loaded.function("ready", ctypes.c_int64)
    for _ in range(3):
        found.enter(None, None, at)
    assert not ready(), "Python looks at the first call"
    rows, lost = taken(ring)
    assert ready()
    assert (rows[:, 0] == at).all() and (rows[:, 1] == CALL).all() and (len(rows), lost) == (3, 0)
    assert (rows[:, 2] <= rows[:, 3]).all() and {*rows[:, 4].tolist()} == {threading.get_ident()}
    for _ in range(CAPACITY // 2):
        found.enter(None, None, at)
    assert not ready(), "and at one when half of it waits"
    for _ in range(CAPACITY):
        found.enter(None, None, at)
    rows, lost = taken(ring)
    assert (len(rows), lost) == (CAPACITY, CAPACITY // 2)
    assert (rows[1:, 2] >= rows[:-1, 3]).all()
    assert ready() and len(taken(ring)[0]) == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_chunks_are_in_order_within_their_call(threads: int) -> None:
    ring = Ring()
    found = recorder(ring, threads)
    chunks = [3, 1, 40]

    @PROGRAM
    def program(launch: object, context: object) -> None:
        for count in chunks:
            region(found, lambda _: None, count)

    found.enter(None, None, place(program))
    rows, lost = taken(ring)
    call, tasks = rows[rows[:, 1] == CALL], rows[rows[:, 1] != CALL]
    assert tasks[:, 1].tolist() == [number for count in chunks for number in range(count)] and (len(call), lost) == (
        1,
        0,
    )
    assert (tasks[:, 2] <= tasks[:, 3]).all()
    assert tasks[:, 2].min() >= call[0, 2] and tasks[:, 3].max() <= call[0, 3]
    for thread in {*tasks[:, 4].tolist()}:
        own = tasks[tasks[:, 4] == thread]
        assert (own[1:, 2] >= own[:-1, 3]).all()


def test_of_more_chunks_than_there_is_room_for_the_last_are_kept() -> None:
    ring = Ring()
    region(recorder(ring), lambda _: None, CAPACITY + 100)
    rows, lost = taken(ring)
    assert (rows[:, 1] == np.arange(100, CAPACITY + 100)).all() and lost == 100


def test_what_runs_while_others_are_read_is_read_later() -> None:
    ring = Ring()
    found = recorder(ring)
    seen: list[list[int]] = []

    def work(chunk: int) -> None:
        if chunk == 2:
            found.enter(None, None, place(nothing))
            seen.append(taken(ring)[0][:, 1].tolist())

    region(found, work, 4)
    assert seen == [[0, 1, CALL]]
    rows, lost = taken(ring)
    assert (rows[:, 1].tolist(), lost) == ([2, 3], 0)


def test_a_chunk_that_ends_when_its_row_is_another_ones_leaves_that_alone() -> None:
    ring = Ring()
    found, at = recorder(ring), place(nothing)

    def work(chunk: int) -> None:
        if chunk == 0:
            taken(ring)
            for _ in range(CAPACITY + 1):
                found.enter(None, None, at)

    region(found, work, 2)
    rows, lost = taken(ring)
    assert (rows[:, 1] == CALL).all() and (len(rows), lost) == (CAPACITY, 3)
