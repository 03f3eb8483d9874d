"""Woven stores: every other column and those between are stored together, unless somebody looks in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.passes import woven_stores
from tilewright.runtime import RunConfig

RNG = np.random.default_rng(6)


@pytest.fixture(autouse=True)
def every_tensor_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(woven_stores, "LARGE", 0)


@pl.jit
def rotated(x: pl.Tensor, y: pl.Tensor, out: pl.InOut[pl.Tensor], first: int, is_late: bool):
    n = 2 * x.shape[1]
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            a, b = pl.load(x, [r, 0], [8, n // 2]), pl.load(y, [r, 0], [8, n // 2])
            if is_late:
                out[r : r + 8, first + 1 : first + n : 2] = a * b
                out[r : r + 8, first : first + n : 2] = a - b
            else:
                out[r : r + 8, first : first + n : 2] = a - b
                out[r : r + 8, first + 1 : first + n : 2] = a * b
    return out


def fusion_of(kernel: Any, *given: Any) -> str:
    return kernel.compile(*given).stages["fusion"]


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int32, np.int8])
@pytest.mark.parametrize("width", [64, 100])
def test_both_halves_of_a_row_are_one_store(first: int, is_late: bool, dtype: Any, width: int) -> None:
    x, y = ((10 * RNG.standard_normal((16, width // 2))).astype(dtype) for _ in range(2))
    out: Any = np.full((16, width + 5), 7, dtype)
    want: Any = out.copy()
    want[:, first : first + width : 2], want[:, first + 1 : first + width : 2] = x - y, x * y
    assert fusion_of(rotated, x, y, out, first, is_late).count("tile.store") == 1
    rotated(x, y, out, first, is_late)
    assert np.array_equal(out, want)


@pl.jit
def in_place(x: pl.InOut[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            a, b = x[r : r + 8, ::2], x[r : r + 8, 1::2]
            x[r : r + 8, ::2] = a + b
            x[r : r + 8, 1::2] = a * b
    return x


def test_what_is_read_between_the_two_is_what_the_first_left() -> None:
    x: Any = RNG.standard_normal((16, 64), np.float32)
    want, out = x.copy(), x.copy()
    in_place(want, config=RunConfig(platform="interpret"))
    assert fusion_of(in_place, out).count("tile.store") == 2
    in_place(out)
    assert np.array_equal(out, want)


@pl.jit
def apart(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [r, 0], [8, 32])
            out[r : r + 8, 0:64:2] = a + 1.0
            out[r : r + 8, 3:67:2] = a * 2.0
    return out


def test_columns_that_are_not_those_between_are_stored_by_themselves() -> None:
    x: Any = RNG.standard_normal((16, 32), np.float32)
    out: Any = np.zeros((16, 70), np.float32)
    want: Any = out.copy()
    want[:, 0:64:2], want[:, 3:67:2] = x + 1, x * 2
    assert fusion_of(apart, x, out).count("tile.store") == 2
    apart(x, out)
    assert np.array_equal(out, want)
