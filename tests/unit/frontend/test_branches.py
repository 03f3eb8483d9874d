"""Branches in jit kernels whose numbers show which side runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.errors import OutOfBoundsError

T = 16


@pl.jit
def in_pairs(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        for q in pl.range(0, cols, 2 * T):
            pl.store(pl.load(x, [0, q], [rows, T]), [0, q], out)
            if q + T < cols:
                pl.store(pl.load(x, [0, q + T], [rows, T]) * 2.0, [0, q + T], out)


@pl.jit
def in_pairs_joined(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        for q in pl.range(0, cols, 2 * T):
            pl.store(pl.load(x, [0, q], [rows, T]), [0, q], out)
            if 0 <= q and q + T < cols:
                pl.store(pl.load(x, [0, q + T], [rows, T]) * 2.0, [0, q + T], out)


@pl.jit
def in_pairs_chained(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        for q in pl.range(0, cols, 2 * T):
            pl.store(pl.load(x, [0, q], [rows, T]), [0, q], out)
            if q < q + T < cols:
                pl.store(pl.load(x, [0, q + T], [rows, T]) * 2.0, [0, q + T], out)


@pl.jit
def in_pairs_negated(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        for q in pl.range(0, cols, 2 * T):
            pl.store(pl.load(x, [0, q], [rows, T]), [0, q], out)
            if not (q < 0 or q + T >= cols):
                pl.store(pl.load(x, [0, q + T], [rows, T]) * 2.0, [0, q + T], out)


@pl.jit
def unguarded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, _ = x.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, T], [rows, T]), [0, 0], out)


@pytest.mark.parametrize("cols", [5, T, T + 3, 3 * T, 5 * T + 1])
@pytest.mark.parametrize("paired", [in_pairs, in_pairs_joined, in_pairs_chained, in_pairs_negated])
def test_a_load_behind_a_condition_fits_every_width(paired: Callable[..., object], cols: int) -> None:
    x = np.random.default_rng(cols).uniform(-1, 1, (4, cols)).astype(np.float32)
    out = np.zeros_like(x)
    paired(x, out)
    doubled = np.arange(cols) // T % 2 == 1
    np.testing.assert_array_equal(out, np.where(doubled, x * 2, x))


def test_a_load_that_nothing_guards_is_refused() -> None:
    x = np.zeros((4, 5), np.float32)
    with pytest.raises(OutOfBoundsError, match="elements 16 to 32 lie outside 0 to 5"):
        unguarded(x, np.zeros((4, 5), np.float32))
