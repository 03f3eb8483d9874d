"""Few rows: which products read the right matrix as it comes, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.passes.few_rows import most_few
from tilewright.runtime import RunConfig


@pytest.mark.parametrize(
    ("lhs", "rhs", "rows"),
    [(pl.FP32, pl.FP32, 16), (pl.BF16, pl.BF16, 8), (pl.FP32, pl.INT8, 8), (pl.INT8, pl.INT8, 8)],
)
def test_more_rows_are_few_of_floats(lhs: DataType, rhs: DataType, rows: int) -> None:
    assert most_few([(lhs, rhs)]) == rows
    assert most_few([(pl.FP32, pl.FP32), (lhs, rhs)]) == rows


@pl.jit
def multiplied(a: pl.Tensor, b: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    m, n = out.shape
    for i in pl.parallel(0, m, 16):
        for j in pl.parallel(0, n, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.zeros([16, 64], dtype=pl.FP32)
                for k in pl.range(0, a.shape[1], 32):
                    acc += pl.load(a, [i, k], [16, 32]) @ pl.load(b, [k, j], [32, 64])
                pl.store(acc + pl.load(bias, [j], [64]), [i, j], out)


@pytest.mark.parametrize("rows", [7, 8, 9, 13, 16, 17])
@pytest.mark.parametrize(("columns", "depth"), [(130, 75), (64, 32), (5, 3)])
def test_products_of_few_rows_and_more_are_what_the_interpreter_computes(rows: int, columns: int, depth: int) -> None:
    draw = np.random.default_rng(rows + columns)
    a, b, bias = (
        draw.integers(-8, 9, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns), (columns,))
    )
    native, interpreted = np.zeros((2, rows, columns), np.float32)
    multiplied(a, b, bias, native)
    multiplied(a, b, bias, interpreted, config=RunConfig(platform="interpret"))
    np.testing.assert_array_equal(native, interpreted)
    np.testing.assert_array_equal(native, a @ b + bias)


@pl.jit
def of_some_depth(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor], depth: int, step: int):
    for j in pl.parallel(0, 64, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.zeros([4, 32], dtype=pl.FP32)
            for k in pl.range(0, depth, step):
                acc += pl.load(a, [0, k], [4, step]) @ (pl.load(b, [k, j], [step, 32]) * 2.0)
            pl.store(acc, [0, j], out)


@pytest.mark.parametrize(("depth", "step"), [(60, 20), (57, 19), (64, 32), (34, 17)])
def test_few_rows_sum_no_further_than_their_loop_goes(depth: int, step: int) -> None:
    draw = np.random.default_rng(depth)
    a, b = draw.integers(-8, 9, (4, 66)).astype(np.float32), draw.integers(-8, 9, (66, 64)).astype(np.float32)
    out = np.zeros((4, 64), np.float32)
    of_some_depth(a, b, out, depth, step)
    np.testing.assert_array_equal(out, 2 * a[:, :depth] @ b[:depth])
