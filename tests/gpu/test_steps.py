"""Kernels over whole tensors on a GPU: each step is a launch of its own, and a product a grid of blocks."""

from __future__ import annotations

from typing import Any

import pytest
from unit.backends.cuda.test_steps import attention, product, squared

import tilewright.language as pl

torch: Any = pytest.importorskip("torch")


@pl.jit
def layer(x: pl.Tensor, w: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.relu(pl.matmul(x, w) + bias)
    return out


def whole(*shape: int) -> Any:
    """Return whole numbers, whose products are exact."""
    return torch.randint(-3, 4, shape, device="cuda").float()


@pytest.mark.parametrize("shape", [(1024, 1024, 1024), (700, 300, 129), (1, 5, 3)])
def test_products_of_any_extents(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x, y = whole(m, k), whole(k, n)
    assert torch.equal(product(x, y), (x.double() @ y.double()).float())


def test_a_product_and_what_follows() -> None:
    x, w, bias = whole(1024, 1024), whole(1024, 1024), whole(1024, 1024)
    assert torch.equal(layer(x, w, bias), torch.relu(x.double() @ w.double() + bias.double()).float())


def test_a_product_into_its_own_factor_reads_it_first() -> None:
    x, y = whole(1024, 1024), whole(1024, 1024)
    wanted = (x.double() @ y.double()).float()
    squared(x, y)
    assert torch.equal(y, wanted)


def test_attention_over_whole_tensors() -> None:
    q, k, v = torch.randn(700, 64, device="cuda"), *(torch.randn(900, 64, device="cuda") for _ in range(2))
    wanted = torch.softmax(q.double() @ k.double().T, -1) @ v.double()
    assert (attention(q, k, v).double() - wanted).norm() < 1e-5 * wanted.norm()
