"""Padded rows: attention in tiles that hang over the end of its rows gives what it gives in others, and no more."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright.language as pl
from tilewright.errors import KernelError
from tilewright.runtime import RunConfig


@pl.jit
def attention(
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor], causal: bool, rows: int, whole: bool = False
):
    length, dim = k.shape
    for row in pl.parallel(0, q.shape[0], rows):
        with pl.at(level=pl.Level.CORE_GROUP):
            place = pl.iota([rows, 1], axis=0) + row
            queries = pl.load(q, [row, 0], [rows, dim])
            best = pl.tile.full([rows, 1], dtype=pl.FP32, value=-1e30)
            total = pl.tile.full([rows, 1], dtype=pl.FP32, value=0.0)
            average = pl.tile.full([rows, dim], dtype=pl.FP32, value=0.0)
            for first in pl.range(0, row + rows if causal else length, rows):
                scores = queries @ pl.load(k, [first, 0], [rows, dim]).T * (1 / math.sqrt(dim))
                if causal:
                    scores = pl.where(pl.arange(first, first + rows) <= place, scores, -math.inf)
                highest = pl.maximum(best, pl.max(scores, axis=-1, keepdims=True))
                weights, kept = pl.exp(scores - highest), pl.exp(best - highest)
                total = total * kept + pl.sum(weights, axis=-1, keepdims=True)
                average = average * kept + pl.cast(weights, v.dtype) @ pl.load(v, [first, 0], [rows, dim])
                best = highest
            result = total - average[:, 0:1] if whole else average / total
            pl.store(pl.cast(result, out.dtype), [row, 0], out)


def matrices(length: int, dtype: Any, dim: int = 32) -> list[NDArray[Any]]:
    draw = np.random.default_rng(length)
    return [draw.normal(size=(length, dim)).astype(dtype) for _ in "qkv"]


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("length", "rows"), [(100, 48), (101, 48), (49, 48), (70, 32), (33, 16)])
def test_the_last_tile_of_attention(length: int, rows: int, causal: bool, dtype: Any) -> None:
    check(length, rows, 32, causal, dtype)


@pytest.mark.parametrize("number", range(12))
def test_random_tiles_of_attention(number: int) -> None:
    draw = Random(f"padded {number}").randint
    dtype = (np.float32, ml_dtypes.bfloat16)[draw(0, 1)]
    check(draw(1, 90), 16 * draw(1, 4) if draw(0, 1) else draw(1, 40), draw(2, 70), draw(0, 1) == 0, dtype)


def check(length: int, rows: int, dim: int, causal: bool, dtype: Any) -> None:
    """Fail unless attention is what the interpreter has, and nothing is written behind it."""
    given = matrices(length, dtype, dim)
    memory: NDArray[Any] = np.full((length + 64, dim), 7, dtype)
    expected: NDArray[Any] = np.zeros((length, dim), dtype)
    attention(*given, memory[:length], causal=causal, rows=rows)
    attention(*given, expected, causal=causal, rows=rows, config=RunConfig(platform="interpret"))
    close = 1e-5 if dtype == np.float32 else 2e-2
    np.testing.assert_allclose(memory[:length].astype(float), expected.astype(float), rtol=close, atol=close)
    assert (memory[length:] == 7).all()


def test_rows_are_padded_where_they_hang_over() -> None:
    given = matrices(100, np.float32)
    text = attention.compile(*given, np.zeros((100, 32), np.float32), causal=True, rows=48).stages["fusion"]
    assert "rows 48, side by side" in text
    assert text.count("rows ?") == 1  # those that are stored


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_rows_that_were_made_are_not_cut(platform: str) -> None:
    given, out = matrices(100, np.float32), np.zeros((100, 1), np.float32)
    with pytest.raises(KernelError, match="does not fit|nobody wrote"):
        attention(*given, out, causal=True, rows=48, whole=True, config=RunConfig(platform=platform))
