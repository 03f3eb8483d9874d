"""Views: a window of an argument is read and written like the argument itself."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.runtime import RunConfig


@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    channels, height, width = x.shape
    for c in pl.parallel(channels):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(0, height, 16):
                pl.store(pl.load(x[c], [i, 0], [16, width]) * 2.0, [i, 0], out[c])
    return out


@pytest.mark.parametrize("height", [20, 16, 7, 1])
def test_a_load_from_a_view_is_cut_like_one_from_the_tensor(height: int, target: str) -> None:
    x = np.random.default_rng(0).random((3, height, 8), np.float32)
    out = np.zeros_like(x)
    doubled(x, out, config=RunConfig(platform=target))
    np.testing.assert_array_equal(out, x * 2)


def test_an_output_that_was_left_out_can_be_written_through_its_views() -> None:
    x = np.ones((3, 20, 8), np.float32)
    np.testing.assert_array_equal(doubled(x), x * 2)


def test_a_view_that_starts_further_on_reaches_the_end() -> None:
    @pl.jit
    def halves(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out[0:4, :])
            pl.store(pl.load(x, [4, 0], [4, 8]), [0, 0], out[4:8, :])
        return out

    x = np.ones((8, 8), np.float32)
    np.testing.assert_array_equal(halves(x), x)


def test_views_that_miss_the_end_of_an_axis_leave_the_shape_open() -> None:
    @pl.jit
    def first(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x[0], [0, 0], [4, 8]), [0, 0], out[0])
        return out

    with pytest.raises(TypeError, match="`out`, which is not written as far as the inputs go along axis 0"):
        first(np.ones((3, 4, 8), np.float32))


def test_a_helper_writes_through_the_view_that_it_is_given() -> None:
    @pl.jit.incore
    def copied(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)
        return out

    @pl.jit
    def every(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for c in pl.range(x.shape[0]):
            copied(x[c], out[c])
        return out

    x = np.ones((3, 4, 8), np.float32)
    np.testing.assert_array_equal(every(x), x)
