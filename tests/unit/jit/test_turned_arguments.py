"""Tensors that lie on their side, as `w.T` does: taken as they lie, without a copy, and with every result the same."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl

torch: Any = pytest.importorskip("torch")

CORE = pl.Level.CORE_GROUP
M, N = pl.dynamic("M"), pl.dynamic("N")


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, a.shape[0], 16):
        for c in pl.parallel(0, b.shape[1], 32):
            with pl.at(level=CORE):
                acc = pl.zeros([16, 32])
                for k in range(0, a.shape[1], 16):
                    acc += pl.load(a, [r, k], [16, 16]) @ pl.load(b, [k, c], [16, 32])
                pl.store(acc, [r, c], out)
    return out


@pl.jit
def increased(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 16):
        for c in pl.parallel(0, x.shape[1], 16):
            with pl.at(level=CORE):
                out = pl.store(pl.load(x, [r, c], [16, 16]) + 1.0, [r, c], out)
    return out


@pl.jit
def dynamic(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    for r in pl.parallel(0, M, 16):
        with pl.at(level=CORE):
            pl.store(pl.load(x, [r, 0], [16, 64], valid_shape=[16, N]) + 1.0, [r, 0], out)
    return out


@pl.jit
def in_place(x: pl.InOut[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=CORE):
            pl.store(pl.load(x, [r, 0], [8, x.shape[1]]) + 1.0, [r, 0], x)
    pl.write(x, [0, 1], pl.read(x, [0, 1]) + 1.0)


@pl.jit
def flattened(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    flat = pl.reshape(x, [1, x.shape[0] * x.shape[1]])
    with pl.at(level=CORE):
        pl.store(pl.load(flat, [0, 0], [1, x.shape[0] * x.shape[1]]) + 1.0, [0, 0], out)
    return out


def matrix(rows: int, columns: int) -> Any:
    return torch.arange(rows * columns, dtype=torch.float32).reshape(rows, columns) % 7 - 3


def ways(x: Any) -> list[Any]:
    """Return a matrix as it lies usually, and on its side: alone, and as part of a larger one."""
    wide = torch.full((x.shape[1], x.shape[0] + 3), -7.0)
    wide[:, : x.shape[0]] = x.T
    return [x, x.T.contiguous().T, wide[:, : x.shape[0]].T]


@pytest.mark.parametrize("shape", [(16, 48, 32), (33, 17, 40), (1, 64, 64), (2, 2, 2)], ids=str)
def test_products_of_tensors_that_lie_in_any_way(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    expected = matrix(m, k) @ matrix(k, n)
    for a in ways(matrix(m, k)):
        for b in ways(matrix(k, n)):
            for out in ways(torch.zeros(m, n)):
                for _ in range(3):
                    out.zero_()
                    product(a, b, out)
                    assert torch.equal(out, expected)


@pytest.mark.parametrize("kernel", [increased, dynamic], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("shape", [(32, 48), (19, 33), (1, 5), (5, 1), (2, 3)], ids=str)
def test_elements_of_tensors_that_lie_in_any_way(kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    x = matrix(*shape)
    for given in ways(x):
        for out in ways(torch.zeros(*shape)):
            for _ in range(3):
                out.zero_()
                kernel(given, out)
                assert torch.equal(out, x + 1)
            assert torch.equal(kernel(given), x + 1)
    array = np.asfortranarray(x.numpy())
    assert np.array_equal(kernel(array), array + 1)


def test_a_tensor_on_its_side_is_written_in_place_and_its_neighbours_are_not() -> None:
    wide = torch.zeros(6, 12)
    for _ in range(3):
        in_place(wide[:, 2:10].T)
    expected = torch.zeros(6, 12)
    expected[:, 2:10] = 3
    expected[1, 2] += 3
    assert torch.equal(wide, expected)


def test_batches_of_matrices_on_their_side() -> None:
    @pl.jit
    def batched(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for b in pl.parallel(x.shape[0]):
            with pl.at(level=CORE):
                t = pl.load(x, [b, 0, 0], [1, x.shape[1], x.shape[2]])
                pl.store(t * 2.0, [b, 0, 0], out)
        return out

    x = torch.arange(3 * 5 * 7.0).reshape(3, 5, 7)
    for _ in range(3):
        assert torch.equal(batched(x.mT), x.mT * 2)


def test_calls_with_tensors_on_their_side_become_warm() -> None:
    x, out = matrix(40, 24), torch.zeros(40, 24)
    increased(x.T, out.T)
    increased(x.T, out.T)
    before = increased.call_info().direct
    increased(x.T, out.T)
    assert increased.call_info().direct == before + 1


def test_what_needs_adjacent_rows_is_given_a_copy() -> None:
    x = matrix(6, 5)
    for _ in range(3):
        out = torch.zeros(1, 30)
        flattened(x.T, out)
        assert torch.equal(out, x.T.reshape(1, 30) + 1)


def test_a_square_is_not_confused_with_its_transpose() -> None:
    x = matrix(16, 16)
    for given in (x, x.T, x, x.T):
        assert torch.equal(increased(given), given + 1)
