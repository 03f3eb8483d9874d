"""Steps: compute on whole tensors as a launch for each of them, run by NumPy on a GPU that is not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.backends.cuda.emulated_device import left
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright.backends.cuda.host.kernels import Launch

M, K, N = pl.dynamic("M"), pl.dynamic("K"), pl.dynamic("N")


@pl.jit
def product(x: pl.Tensor[[M, K], pl.FP32], y: pl.Tensor[[K, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(x, y)
    return out


@pl.jit
def squared(x: pl.Tensor[[M, M], pl.FP32], out: pl.InOut[pl.Tensor[[M, M], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(x, out)
    return out


@pl.jit
def attention(
    q: pl.Tensor[[M, K], pl.FP32],
    k: pl.Tensor[[N, K], pl.FP32],
    v: pl.Tensor[[N, K], pl.FP32],
    out: pl.Out[pl.Tensor[[M, K], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        scores = pl.matmul(q, k, b_trans=True)
        weights = pl.exp(scores - pl.row_max(scores))
        out[:] = pl.matmul(weights / pl.row_sum(weights), v)
    return out


@pl.jit
def in_a_grid(x: pl.Tensor[[M, K], pl.FP32], y: pl.Tensor[[K, N], pl.FP32], out: pl.Out[pl.Tensor[[4, M, N], pl.FP32]]):
    for plane in pl.parallel(4):
        with pl.at(level=pl.Level.CORE_GROUP):
            for row in pl.parallel(0, 256, 64):
                out[plane, row : row + 64, 0:256] = pl.load(x, [row, 0], [64, 256]) + pl.load(y, [row, 0], [64, 256])
    return out


@pl.jit
def small(x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.parallel(0, 64, 16):
            pl.store(pl.load(x, [row, 0], [16, 64]) * 2.0, [row, 0], out)
    return out


def drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def grids(kernel: Any, *args: Any) -> list[str]:
    unit = written(kernel.specialize(*args).program)
    return [each.grid for each in unit.launches if isinstance(each, Launch)]


def softmax(x: Any) -> Any:
    weights = np.exp(x - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def test_a_product_of_whole_tensors_is_one_grid_that_writes_its_output() -> None:
    assert grids(product, drawn(300, 70), drawn(70, 260), drawn(300, 260)) == ["i in 0:M:128 x i in 0:N:128"]


def test_a_product_that_reads_its_output_is_copied_there_when_all_of_it_is_made() -> None:
    assert grids(squared, drawn(300, 300), drawn(300, 300)) == ["i in 0:M:128 x i in 0:M:128", "up to 2048 blocks"]


def test_kernels_inside_grids_and_of_few_elements_stay_what_they_are() -> None:
    assert grids(small, drawn(64, 64), drawn(64, 64)) == ["1"]
    (grid,) = grids(in_a_grid, drawn(256, 256), drawn(256, 256), drawn(4, 256, 256))
    assert grid.startswith("plane in")


@pytest.mark.parametrize(("rows", "depth", "columns"), [(300, 70, 260), (256, 64, 256), (1, 5, 513)])
def test_products_leave_what_numpy_makes(rows: int, depth: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, out = drawn(rows, depth), drawn(depth, columns), np.zeros((rows, columns), np.float32)
    *_, found = left(monkeypatch, product.specialize(x, y, out).program, [x, y, out])
    np.testing.assert_allclose(found, x @ y, rtol=1e-4, atol=1e-4)


def test_a_product_into_its_own_factor_leaves_what_numpy_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = drawn(300, 300), drawn(300, 300) + 1
    *_, found = left(monkeypatch, squared.specialize(x, out).program, [x, out])
    np.testing.assert_allclose(found, x @ out, rtol=1e-3, atol=1e-3)


def test_attention_over_whole_tensors_leaves_what_numpy_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v, out = drawn(270, 40), drawn(300, 40), drawn(300, 40) + 1, np.zeros((270, 40), np.float32)
    *_, found = left(monkeypatch, attention.specialize(q, k, v, out).program, [q, k, v, out])
    np.testing.assert_allclose(found, softmax(q @ k.T) @ v, rtol=1e-3, atol=1e-3)
    assert all(each != "1" for each in grids(attention, q, k, v, out))
