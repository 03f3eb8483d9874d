"""Carried products: sums that a loop carries, of tiles with only a few rows in them."""

from __future__ import annotations

import pytest
import torch

import tilewright.language as pl
from tilewright.runtime import RunConfig


@pl.jit
def summed(q: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        left = pl.load(q, [0, 0], [16, 32])
        acc = pl.tile_full([16, 32], pl.FP32, 0.0)
        for k in pl.range(0, 64, 32):
            acc = acc + left @ pl.load(w, [k, 0], [32, 32])
        pl.store(acc, [0, 0], out)
    return out


@pytest.mark.parametrize("rows", [1, 2, 8, 9, 16])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_rows_that_are_there_are_summed_whatever_the_tile_has_room_for(
    target: str, dtype: torch.dtype, rows: int
) -> None:
    q, w, out = torch.ones(rows, 32, dtype=dtype), torch.arange(2048.0).reshape(64, 32), torch.zeros(rows, 32)
    w = (w % 7 - 3).to(dtype)
    summed(q, w, out, config=RunConfig(platform=target))
    torch.testing.assert_close(out, w.float().sum(0).expand(rows, 32))
