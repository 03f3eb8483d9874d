"""Products that are only stored: summed where they go, unless an operand may lie there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright.language as pl


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 64):
        for j in pl.parallel(0, b.shape[1], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(
                    pl.matmul(pl.load(a, [i, 0], [64, a.shape[1]]), pl.load(b, [0, j], [a.shape[1], 64])), [i, j], c
                )
    return c


@pl.jit
def squared(c: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.matmul(pl.load(c, [0, 0], c.shape), pl.load(c, [0, 0], c.shape)), [0, 0], c)


@pl.jit
def multiplied(a: pl.Tensor, c: pl.InOut[pl.Tensor]):
    rows = a.shape[0]
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.matmul(pl.load(a, [0, 0], [rows, rows]), pl.load(c, [rows // 2, 0], [rows, 32])), [0, 0], c)


def _drawn(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    draw = np.random.default_rng(sum(shape))
    if np.issubdtype(dtype, np.integer):
        return draw.choice(np.array([-128, -127, -1, 0, 1, 127], dtype), shape)
    return draw.integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize("m", [1, 7, 8, 9, 16, 63, 65, 130])
@pytest.mark.parametrize(("n", "k"), [(1, 3), (64, 64), (100, 130), (33, 2100)])
def test_products_go_where_they_are_stored(m: int, n: int, k: int, dtype: Any) -> None:
    a, b = _drawn((m, k), dtype), _drawn((k, n), dtype)
    around: NDArray[Any] = np.full((m + 2, n + 5), 77, np.int32 if dtype is np.int8 else np.float32)
    product(a, b, around[1:-1, 2:-3])
    wanted: NDArray[Any] = np.full_like(around, 77)
    wanted[1:-1, 2:-3] = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(around, wanted)


@pytest.mark.parametrize("m", [4, 16, 48, 200])
def test_a_product_into_its_own_factor_reads_it_first(m: int) -> None:
    c = _drawn((m, m), np.float32)
    wanted = c @ c
    squared(c)
    np.testing.assert_array_equal(c, wanted)


@pytest.mark.parametrize("m", [4, 16, 48, 200])
def test_a_product_over_part_of_its_factor_reads_it_first(m: int) -> None:
    a, c = _drawn((m, m), np.float32), _drawn((2 * m, 32), np.float32)
    wanted: NDArray[Any] = np.array(c)
    wanted[:m] = a @ c[m // 2 : m // 2 + m]
    multiplied(a, c)
    np.testing.assert_array_equal(c, wanted)
