"""What kernels on the GPU give back to host functions: views of tensors, and what the last of several blocks makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu.device import from_device, launched, on_device
from unit.backends.cuda.test_given import GRID, VIEWS, interpreted, viewing


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_what_a_kernel_makes_are_those_of_the_host(view: str) -> None:
    x = np.random.default_rng(3).normal(size=(8, 16)).astype(np.float32)
    program = viewing(view).specialize(x, 5, x).program
    given, out = on_device(x), on_device(np.zeros_like(x))
    launched(program)(given, 5, out)
    _, want = interpreted(program, [x, 5, np.zeros_like(x)])
    assert np.array_equal(from_device(out, want.dtype), want)


@pytest.mark.parametrize("blocks", [1, 3, 100])
def test_of_several_blocks_the_last_one_gives_back_what_it_makes(blocks: int) -> None:
    nothing: Any = np.zeros(128, np.int64)
    out = on_device(nothing)
    launched(GRID)(blocks, out)
    (want,) = interpreted(GRID, [blocks, nothing])
    assert np.array_equal(from_device(out, want.dtype), want)
