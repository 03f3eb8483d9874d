"""Folded gathers: rows that indices name, added up where they lie, however few there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl

RNG = np.random.default_rng(3)


@pl.jit
def bags(table: pl.Tensor, words: pl.Tensor, out: pl.Out[pl.Tensor]):
    for bag in pl.parallel(words.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            index = pl.load(words[bag], [0], [words.shape[1]])
            out[bag, :] = pl.sum(table[index], axis=0)
    return out


@pytest.mark.parametrize("width", [16, 64, 100, 256, 300])
@pytest.mark.parametrize("count", [1, 3, 4, 5, 17])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_bag_holds_the_sum_of_its_rows(width: int, count: int, dtype: Any) -> None:
    table, words = RNG.standard_normal((50, width), np.float32), RNG.integers(0, 50, (6, count)).astype(dtype)
    out = np.zeros((6, width), np.float32)
    bags(table, words, out)
    np.testing.assert_allclose(out, table[words].sum(1), rtol=1e-5, atol=1e-5)


@pl.jit
def moved_on(table: pl.Tensor, words: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        index = pl.load(words, [0], [8])
        pl.store(index + 1, [0], words)
        pl.store(pl.sum(table[index], axis=0, keepdims=True), [0, 0], out)
        pl.store(pl.sum(table[pl.load(words, [0], [8])], axis=0, keepdims=True), [1, 0], out)
    return out


def test_indices_that_are_stored_over_are_those_that_were_loaded() -> None:
    table: Any = RNG.standard_normal((50, 64), np.float32)
    words: Any = RNG.integers(0, 49, 8).astype(np.int32)
    out, held = np.zeros((2, 64), np.float32), words.copy()
    moved_on(table, words, out)
    np.testing.assert_allclose(out, [table[held].sum(0), table[held + 1].sum(0)], rtol=1e-5, atol=1e-5)
