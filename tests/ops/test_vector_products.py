"""Vector products: a vector times the columns of a matrix, panel by panel."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilewright.language as pl
from tilewright.runtime import RunConfig

K, N = pl.dynamic("K"), pl.dynamic("N")


@pl.jit
def times(v: pl.Tensor, a: pl.Tensor, out: pl.Out[pl.Tensor], columns: int):
    for n in pl.parallel(0, a.shape[1], columns):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(v, [0], [a.shape[0]]) @ pl.load(a, [0, n], [a.shape[0], columns]), [n], out)
    return out


@pl.jit
def summed(
    v: pl.Tensor[[K], pl.FP32], a: pl.Tensor[[K, N], pl.FP32], out: pl.Out[pl.Tensor[[N], pl.FP32]], columns: int
):
    for n in pl.parallel(0, N, columns):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.zeros([columns])
            for k in pl.range(0, K, 32):
                acc += pl.load(v, [k], [32], pad=0.0) @ pl.load(a, [k, n], [32, columns], pad=0.0)
            pl.store(acc, [n], out, mask=n + pl.arange(columns) < N)
    return out


@pl.jit
def biased(v: pl.Tensor, a: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor], columns: int):
    for n in pl.parallel(0, a.shape[1], columns):
        with pl.at(level=pl.Level.CORE_GROUP):
            product = pl.load(v, [0], [a.shape[0]]) @ pl.load(a, [0, n], [a.shape[0], columns])
            pl.store(pl.relu(product + pl.load(bias, [n], [columns])), [n], out)
    return out


def small(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


@pytest.mark.parametrize("columns", [16, 64, 100])
@pytest.mark.parametrize("shape", [(32, 64), (48, 1000), (7, 33), (1, 5), (300, 2048)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_vector_meets_every_column(target: str, dtype: torch.dtype, shape: tuple[int, int], columns: int) -> None:
    v, a, bias = small(shape[0], dtype=dtype), small(*shape, dtype=dtype), small(shape[1])
    wanted, out, config = v.float() @ a.float(), torch.full((shape[1],), torch.nan), RunConfig(platform=target)
    times(v, a, out, columns, config=config)
    torch.testing.assert_close(out, wanted)
    biased(v, a, bias, out, columns, config=config)
    torch.testing.assert_close(out, (wanted + bias).relu())


@pytest.mark.parametrize("shape", [(32, 64), (50, 130), (7, 33)], ids=str)
def test_sums_of_extents_that_only_calls_know_meet_every_column(target: str, shape: tuple[int, int]) -> None:
    v, a, out = small(shape[0]), small(*shape), torch.full((shape[1],), torch.nan)
    summed(v, a, out, 48, config=RunConfig(platform=target))
    torch.testing.assert_close(out, v @ a)


def test_panels_of_vectors_are_as_wide_as_the_machine_wants() -> None:
    args: list[Any] = [small(256), small(256, 1024), torch.empty(1024), 64]
    assert "n by 512 instead of 64" in str(times.compile(*args).stages["tiles"])
