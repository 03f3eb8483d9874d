"""Products that other ops fold or add to: what is chosen for the machine leaves them what they were."""

# pyright: basic, reportInvalidTypeForm=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl

M, N, K = pl.dynamic("M"), pl.dynamic("N"), pl.dynamic("K")
Left, Right, Result = pl.Tensor[[M, K], pl.FP32], pl.Tensor[[K, N], pl.FP32], pl.Tensor[[M, N], pl.FP32]


@pl.jit
def less_their_rows(a: Left, b: Right, c: pl.Out[Result]):
    for m in pl.parallel(0, M, 32):
        for n in pl.parallel(0, N, 1):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.matmul(pl.load(a, [m, 0], [32, 64]), pl.load(b, [0, n], [64, 1]))
                pl.store(acc - pl.row_max(acc), [m, n], c)
    return c


@pl.jit
def less_their_columns(a: Left, b: Right, c: pl.Out[Result]):
    for m in pl.parallel(0, M, 1):
        for n in pl.parallel(0, N, 32):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.matmul(pl.load(a, [m, 0], [1, 64]), pl.load(b, [0, n], [64, 32]))
                pl.store(acc - pl.col_sum(acc), [m, n], c)
    return c


@pytest.mark.parametrize("kernel", [less_their_rows, less_their_columns], ids=lambda kernel: kernel.name)
def test_folds_over_one_element_stay_with_it(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((33, 64), np.float32), rng.standard_normal((64, 37), np.float32)
    assert not kernel(a, b).any()


@pl.jit
def with_a_bias(a: pl.Tensor, b: pl.Tensor, bias: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        product = pl.matmul(pl.load(a, [0, 0], a.shape), pl.load(b, [0, 0], b.shape))
        pl.store(product + pl.load(bias, [0], [bias.shape[0]]), [0, 0], c)
    return c


@pytest.mark.parametrize("width", [1, 16])
def test_a_row_of_one_axis_is_added_to_a_product(width: int) -> None:
    ones, bias = np.ones((32, 8), np.float32), np.arange(width, dtype=np.float32)
    found = np.zeros((32, width), np.float32)
    with_a_bias(ones, np.ones((8, width), np.float32), bias, found)
    np.testing.assert_array_equal(found, np.broadcast_to(bias + 8, (32, width)))
