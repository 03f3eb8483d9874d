"""Kernels over whole tensors on a GPU: each step is a launch of its own, and a product a grid of blocks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import tilewright.language as pl

torch: Any = import_module("torch")
M, N, K = pl.dynamic("M"), pl.dynamic("N"), pl.dynamic("K")


@pl.jit
def product(x: pl.Tensor[[M, K], pl.FP32], y: pl.Tensor[[K, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(x, y)
    return out


@pl.jit
def layer(x: pl.Tensor, w: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.relu(pl.matmul(x, w) + bias)
    return out


@pl.jit
def itself(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(x, out)


def _drawn(*shape: int) -> Any:
    return torch.randint(-3, 4, shape, device="cuda").float()


@pytest.mark.parametrize("shape", [(1024, 1024, 1024), (700, 300, 129), (1, 5, 3)])
def test_products_of_any_extents(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x, y = _drawn(m, k), _drawn(k, n)
    assert torch.equal(product(x, y), (x.double() @ y.double()).float())


def test_a_product_and_what_follows() -> None:
    x, w, bias = _drawn(1024, 1024), _drawn(1024, 1024), _drawn(1024, 1024)
    assert torch.equal(layer(x, w, bias), torch.relu(x.double() @ w.double() + bias.double()).float())


def test_a_product_into_its_own_factor_reads_it_first() -> None:
    x, y = _drawn(1024, 1024), _drawn(1024, 1024)
    wanted = (x.double() @ y.double()).float()
    itself(x, y)
    assert torch.equal(y, wanted)
