"""Products of a matrix with one column: the rows are met as they lie."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import tilewright.language as pl

np: Any = numpy  # their stubs leave most of what is used here half typed
RNG: Any = np.random.default_rng(0)


@pl.jit
def alone(a: pl.Tensor, x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(a, [0, 0], a.shape) @ pl.load(x, [0, 0], x.shape), [0, 0], out)
    return out


@pl.jit
def summed(a: pl.Tensor, x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int, depth: int):
    for i in pl.parallel(0, a.shape[0], rows):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.load(a, [i, 0], [rows, depth]) @ pl.load(x, [0, 0], [depth, 1])
            for k in pl.range(depth, a.shape[1], depth):
                acc += pl.load(a, [i, k], [rows, depth]) @ pl.load(x, [k, 0], [depth, 1])
            pl.store(acc, [i, 0], out)
    return out


def operands(dtype: str, rows: int, depth: int) -> tuple[Any, Any, Any]:
    a, x = (RNG.integers(-9, 9, shape).astype(dtype) for shape in ((rows, depth), (depth, 1)))
    total = "float64" if dtype == "float64" else "float32" if dtype.startswith("float") else "int32"
    return a, x, np.zeros((rows, 1), total)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32"])
@pytest.mark.parametrize(("rows", "depth"), [(9, 1), (17, 15), (16, 64), (70, 130), (33, 200)])
def test_a_column_meets_rows_of_any_length(dtype: str, rows: int, depth: int):
    a, x, out = operands(dtype, rows, depth)
    alone(a, x, out)
    assert np.array_equal(out, a.astype(out.dtype) @ x.astype(out.dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_matrices_and_columns_may_lie_anywhere(dtype: str):
    a, x, _ = operands(dtype, 40, 50)
    wide, long, turned = np.zeros((40, 70), dtype), np.zeros((50, 3), dtype), np.asfortranarray(a)
    wide[:, 5:55], long[:, 1:2] = a, x
    for left in (a, wide[:, 5:55], turned):
        for column in (x, long[:, 1:2]):
            around = np.full((40, 3), 7, operands(dtype, 1, 1)[2].dtype)
            alone(left, column, around[:, 1:2])
            assert np.array_equal(around[:, 1:2], a.astype(around.dtype) @ x.astype(around.dtype))
            assert np.all(around[:, ::2] == 7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "depth"), [(16, 16), (64, 64), (48, 40)])
def test_sums_over_parts_of_a_column_hang_over_both_edges(dtype: str, rows: int, depth: int):
    a, x, out = operands(dtype, 150, 170)
    summed(a, x, out, rows, depth)
    assert np.array_equal(out, a @ x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_column_of_a_tile_that_is_computed_is_met(dtype: str, at: int):
    @pl.jit
    def kernel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(b, [0, 0], [24, 8]) + pl.load(b, [0, 0], [24, 8])
            pl.store(pl.load(a, [0, 0], [17, 24]) @ t[:, at : at + 1], [0, 0], out)

    a, _, out = operands(dtype, 17, 24)
    b = RNG.integers(-9, 9, (24, 8)).astype(dtype)
    kernel(a, b, out)
    assert np.array_equal(out, a.astype(out.dtype) @ (2 * b.astype(out.dtype))[:, at : at + 1])
