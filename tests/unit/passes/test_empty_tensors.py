"""Empty tensors: ops on whole tensors without elements give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.runtime import RunConfig


@pl.jit
def computed(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.exp(x) + 1.0


@pl.jit
def summed(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.sum(x, axis=1)


@pl.jit
def multiplied(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x @ y


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_ops_on_empty_tensors_are_numpys(platform: str) -> None:
    config = RunConfig(platform=platform)
    for shape in ((0, 5), (5, 0), (0, 0)):
        x, rows = np.ones(shape, np.float32), np.ones(shape[:1], np.float32)
        computed(x, np.zeros(shape, np.float32), config=config)
        summed(x, rows, config=config)
        assert rows.tolist() == x.sum(1).tolist()
    for m, k, n in ((3, 0, 4), (0, 3, 4), (3, 4, 0)):
        out = np.ones((m, n), np.float32)
        multiplied(np.ones((m, k), np.float32), np.ones((k, n), np.float32), out, config=config)
        assert out.tolist() == np.zeros((m, n)).tolist()
