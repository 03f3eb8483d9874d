"""Products that are added to a tile, in every way that people write it, at ragged edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright.language as pl
from tilewright.runtime import RunConfig


@pl.jit
def by_operator(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 3):
        for c in pl.parallel(0, w.shape[1], 15):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.zeros([3, 15], pl.FP32)
                for q in pl.range(0, x.shape[1], 4):
                    acc += pl.load(x, [r, q], [3, 4]) @ pl.load(w, [q, c], [4, 15])
                pl.store(acc, [r, c], out)


@pl.jit
def by_name(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 3):
        for c in pl.parallel(0, w.shape[1], 15):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.zeros([3, 15], pl.FP32)
                for q in pl.range(0, x.shape[1], 4):
                    acc += pl.matmul(pl.load(x, [r, q], [3, 4]), pl.load(w, [q, c], [4, 15]))
                pl.store(acc, [r, c], out)


@pl.jit
def by_a_sum(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 3):
        for c in pl.parallel(0, w.shape[1], 15):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.zeros([3, 15], pl.FP32)
                for q in pl.range(0, x.shape[1], 4):
                    acc = acc + pl.load(x, [r, q], [3, 4]) @ pl.load(w, [q, c], [4, 15])
                pl.store(acc, [r, c], out)


@pytest.mark.parametrize("kernel", [by_operator, by_name, by_a_sum])
@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_sums_are_as_large_as_what_is_left_at_an_edge(kernel: Any, platform: str) -> None:
    draw = np.random.default_rng(0)
    x, w = (draw.integers(-4, 5, shape).astype(np.float32) for shape in ((4, 33), (33, 17)))
    out: NDArray[np.float32] = np.full((4, 17), 9, np.float32)
    kernel(x, w, out, config=RunConfig(platform=platform))
    np.testing.assert_array_equal(out, x @ w)


@pl.jit
def a_sum_by_name(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.zeros([3, 15], pl.FP32)
        acc = acc + pl.matmul(pl.load(x, [0, 0], [3, 4]), pl.load(w, [0, 0], [4, 15]))
        pl.store(acc, [0, 0], out)


def test_a_sum_of_a_product_by_name_is_what_it_says() -> None:
    x, w, out = (np.ones(shape, np.float32) for shape in ((3, 4), (4, 15), (3, 15)))
    text = a_sum_by_name.specialize(x, w, out).program.as_python(concise=True)
    assert "pl.tile.add(" in text and "matmul_acc" not in text
