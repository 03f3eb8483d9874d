"""Tiles put together for a store: written where that goes, the same as through a tile of their own."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from ops.indexed import computed, sample

import tilewright.language as pl
from tilewright.dtypes import DataType

np: Any = numpy  # their stubs leave most of what is used here half typed
RNG = np.random.default_rng(11)
STEPS = {"P1010": (2, 1), "P0100": (4, 2), "P1111": (1, 0)}


def same(got: Any, want: Any) -> None:
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


@pytest.mark.parametrize("dtype", [pl.INT8, pl.FP16, pl.FP32], ids=str)
def test_tiles_side_by_side_and_in_larger_ones(dtype: DataType) -> None:
    x, y, held = sample(RNG, dtype, 5, 13), sample(RNG, dtype, 6, 70), sample(RNG, dtype, 12, 90)
    body = (
        "out = pl.store(pl.concat(pl.load(x, [0, 0], [5, 13]), pl.load(y, [row, 3], [5, 64])), [row, 2], out)\n"
        "pad = pl.fillpad_expand(pl.load(x, [2, 1], [3, 9]), [4, 30], pad_value=pl.PadValue.max)\n"
        "out = pl.store(pad, [8, 55], out)\n"
        "out = pl.store(pl.concat(pl.load(out, [0, 40], [2, 8]), pl.load(out, [1, 0], [2, 40])), [0, 0], out)"
    )
    for row in (0, 1):
        want = held.copy()
        want[row : row + 5, 2:79] = np.concatenate([x, y[row : row + 5, 3:67]], 1)
        want[8:12, 55:85] = np.inf if dtype.is_float() else np.iinfo(dtype.numpy).max
        want[8:11, 55:64] = x[2:5, 1:10]
        want[0:2, :48] = np.concatenate([want[0:2, 40:48], want[1:3, 0:40]], 1)
        same(computed(body, x=x, y=y, out=held, row=row), want)


@pytest.mark.parametrize("pattern", STEPS)
def test_large_tensors_are_written_past_the_caches_wherever_they_begin(pattern: str) -> None:
    step, first = STEPS[pattern]
    wide, x = sample(RNG, pl.FP32, 6, 1088), sample(RNG, pl.FP32, 6, 1088 // step)
    body = (
        f"d = pl.tile.scatter_mask(pl.load(wide, [0, 0], [6, 1088]), pl.load(x, [0, 0], [6, {1088 // step}]), "
        f"pl.tile.MaskPattern.{pattern})\nout = pl.store(d, [3, at], out)\n"
        f"s = pl.scatter(x, mask_pattern=pl.tile.MaskPattern.{pattern}, dst=wide)\n"
        "out = pl.assemble(out, s, [10, at])\n"
        f"g = pl.gather(wide, mask_pattern=pl.tile.MaskPattern.{pattern})\nout = pl.assemble(out, g, [20, at])\n"
        "c = pl.concat(pl.load(wide, [0, 0], [6, 512]), pl.load(wide, [0, 512], [6, 576]))\n"
        "out = pl.store(c, [30, at], out)"
    )
    held = np.zeros((960, 1104), np.float32)
    put = wide.copy()
    put[:, first::step] = x
    for at in (0, 4, 8, 12, 5):  # wherever the memory begins, one of them is aligned
        want = held.copy()
        want[3:9, at : at + 1088] = want[10:16, at : at + 1088] = put
        want[20:26, at : at + 1088 // step] = wide[:, first::step]
        want[30:36, at : at + 1088] = wide
        same(computed(body, x=x, wide=wide, out=held, at=at), want)


def test_a_pattern_puts_into_a_turned_tensor() -> None:
    x, wide = sample(RNG, pl.FP32, 8, 6), sample(RNG, pl.FP32, 12, 8)
    body = (
        "s = pl.scatter(x, mask_pattern=pl.tile.MaskPattern.P1010, dst=pl.transpose(wide, 0, 1))\n"
        "out = pl.assemble(out, s, [1, 2])"
    )
    want = np.zeros((10, 20), np.float32)
    want[1:9, 2:14] = wide.T
    want[1:9, 3:14:2] = x
    same(computed(body, x=x, wide=wide, out=np.zeros((10, 20), np.float32)), want)
