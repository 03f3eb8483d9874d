"""Launches on memory that overlaps, lies between elements, or is known by its address alone."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.pto.jit.kernels import adding

from tilewright.errors import ExecutionError

np = cast("Any", numpy)
BYTES = 8 * 16 * 4
kernel = cache(adding)
place = st.one_of(st.integers(0, 600).map(lambda n: n * 4), st.integers(0, 2400))


def views(memory: Any, places: tuple[int, ...]) -> list[Any]:
    return [memory[at : at + BYTES].view(np.float32) for at in places]


@settings(deadline=None, max_examples=60)
@given(st.tuples(place, place, place), st.lists(st.booleans(), min_size=3, max_size=3))
def test_pointers_may_overlap_anyhow(places: tuple[int, ...], bare: list[bool]) -> None:
    memory = np.random.default_rng(1).integers(0x30, 0x40, 2400 + BYTES, np.uint8)  # numbers wherever one starts
    expected = memory.copy()
    a, b, out = views(expected, places)
    out[:] = a + b
    given = [x.ctypes.data if is_bare else x for x, is_bare in zip(views(memory, places), bare, strict=True)]
    kernel()[1, None](*given, 8)
    assert memory.tobytes() == expected.tobytes()


@pytest.mark.parametrize("start", [0, 1, 4])
def test_the_end_of_a_shared_buffer_is_its_end(start: int) -> None:
    memory = np.zeros(4096, np.uint8)
    a = memory[start : start + BYTES].view(np.float32)
    with pytest.raises(ExecutionError, match="inside its buffer"):
        kernel()[2, None](a, a, a, 16)
    kernel()[1, None](a, a, a, 8)
