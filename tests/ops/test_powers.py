"""Powers: exponents that are numbers mean what tiles of them mean, at infinities and zeros, too."""

from __future__ import annotations

import pytest
import torch

import tilewright.language as pl
from tilewright.runtime import RunConfig

EDGES = [float("-inf"), -4.0, -0.0, 0.0, 4.0, float("inf"), float("nan")]


@pl.jit
def raised(x: pl.Tensor, exponent: float, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) ** exponent, [0, 0], out)
    return out


@pl.jit
def raised_by_each(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.pow(pl.load(x, [0, 0], x.shape), pl.load(y, [0, 0], y.shape)), [0, 0], out)
    return out


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("exponent", [-2.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_an_exponent_means_the_same_as_a_number_and_as_a_tile(target: str, dtype: torch.dtype, exponent: float) -> None:
    x, config = torch.tensor([EDGES], dtype=dtype), RunConfig(platform=target)
    by_number, by_tile = (
        raised(x, exponent, config=config),
        raised_by_each(x, torch.full_like(x, exponent), config=config),
    )
    wanted = torch.tensor([[_power(edge, exponent) for edge in EDGES]], dtype=dtype)
    for found in (by_number, by_tile):
        torch.testing.assert_close(found, wanted, equal_nan=True, rtol=0.01, atol=0)
        assert torch.equal(found.signbit() & ~wanted.isnan(), wanted.signbit() & ~wanted.isnan())


def _power(base: float, exponent: float) -> float:
    """Return what C's `pow` does."""
    try:
        found = base**exponent
    except ZeroDivisionError:
        return float("-inf") if str(base) == "-0.0" and exponent % 2 == 1 else float("inf")
    return float("nan") if isinstance(found, complex) else found
