"""Overlap: exact for what slicing makes, quick for everything."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tilewright.call.argument import Argument, share_memory
from tilewright.core.region import overlaps_itself

BLOCK: Any = np.zeros((12, 12), np.int16)


@pytest.mark.parametrize(
    ("a", "b", "meet"),
    [
        (BLOCK, BLOCK, True),
        (BLOCK[:6], BLOCK[6:], False),
        (BLOCK[:7], BLOCK[6:], True),
        (BLOCK[:, :6], BLOCK[:, 6:], False),
        (BLOCK[::2], BLOCK[1::2], False),
        (BLOCK[:, ::3], BLOCK[:, 1::3], False),
        (BLOCK[::2, ::2], BLOCK.T[::2, 1::2], False),
        (BLOCK[::2, ::2], BLOCK.T[::2, ::2], True),
        (BLOCK[::-1], BLOCK[3:4], True),
        (BLOCK[:0], BLOCK, False),
        (BLOCK, np.zeros(4, np.int16), False),
    ],
)
def test_slices_share_memory_where_they_meet(a: Any, b: Any, meet: bool) -> None:
    one, other = Argument.of_array(a), Argument.of_array(b)
    assert share_memory(one, other) == share_memory(other, one) == meet


def test_what_takes_long_to_decide_counts_as_shared() -> None:
    """NumPy's own example of a pair over which its exact check sits for a minute."""
    memory = np.zeros(192163377, np.int8)
    a = as_strided(memory, strides=(36674, 61119, 85569), shape=(1049, 1049, 1049))
    b = as_strided(memory[64023025:], strides=(12223, 12224, 1), shape=(1049, 1049, 1))
    started = time.thread_time()
    assert share_memory(Argument.of_array(a), Argument.of_array(b))
    assert time.thread_time() - started < 1


@pytest.mark.parametrize(
    ("array", "overlaps"),
    [
        (BLOCK, False),
        (BLOCK.T, False),
        (BLOCK[::-1, ::3], False),
        (BLOCK[3, 3], False),
        (np.broadcast_to(BLOCK[0], (5, 12)), True),
        (np.broadcast_to(BLOCK[0], (1, 12)), False),
        (np.broadcast_to(BLOCK[:0], (0, 12)), False),
        (as_strided(BLOCK, (5, 4), (2, 2)), True),
        (as_strided(BLOCK, (5, 4), (8, 2)), False),
        (as_strided(BLOCK, (3, 4), (8, 6)), False),
        (as_strided(BLOCK, (4, 5), (8, 6)), True),
    ],
)
def test_elements_share_memory_where_steps_along_axes_meet(array: Any, overlaps: bool) -> None:
    assert overlaps_itself(array.shape, array.strides, array.itemsize) == overlaps
