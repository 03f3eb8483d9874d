"""Parted stores: what is computed to be stored side by side is stored one by one, and means the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.runtime import RunConfig

RNG = np.random.default_rng(8)


@pl.jit
def both(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [8, x.shape[1]])
            pl.store(pl.concat(t, -t), [r, 0], out)
    return out


@pytest.mark.parametrize("rows", [16, 13], ids=["whole", "ragged"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_a_tile_and_what_is_made_of_it_lie_side_by_side(rows: int, dtype: Any) -> None:
    x: Any = (10 * RNG.standard_normal((rows, 40))).astype(dtype)
    out: Any = np.zeros((rows, 80), dtype)
    assert (both.compile(x, out).stages["fusion"].count("tile.store") == 2) == (rows == 16)
    both(x, out)
    assert np.array_equal(out, np.concatenate([x, -x], 1))


@pl.jit
def turned_over(x: pl.InOut[pl.Tensor]):
    n = x.shape[1] // 2
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            a, b = pl.load(x, [r, 0], [8, n]), pl.load(x, [r, n], [8, n])
            pl.store(pl.concat(b + 1.0, a), [r, 0], x)
    return x


def test_what_is_stored_over_was_read_before() -> None:
    x: Any = RNG.standard_normal((16, 64), np.float32)
    want, out = x.copy(), x.copy()
    turned_over(want, config=RunConfig(platform="interpret"))
    turned_over(out)
    assert np.array_equal(out, want) and np.array_equal(out, np.concatenate([x[:, 32:] + 1, x[:, :32]], 1))


@pl.jit
def kept(x: pl.Tensor, out: pl.Out[pl.Tensor], sums: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [8, x.shape[1]])
            pair = pl.concat(t, -t)
            pl.store(pair, [r, 0], out)
            pl.store(pl.sum(pair, axis=1, keepdims=True), [r, 0], sums)
    return out


def test_what_is_read_again_is_put_together() -> None:
    x: Any = RNG.standard_normal((16, 40), np.float32)
    out, sums = np.zeros((16, 80), np.float32), np.ones((16, 1), np.float32)
    kept(x, out, sums)
    assert np.array_equal(out, np.concatenate([x, -x], 1)) and np.abs(sums).max() < 1e-4
