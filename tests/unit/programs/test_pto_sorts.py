"""Sorts as PTO text: read back, they give every bit, NaN and equals included."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from property.exported import read_back

import tilewright.language as pl
from tilewright import pto

Scores = pl.Tensor[[4, 64], pl.FP32]
Pairs = pl.Tensor[[4, 128], pl.FP32]
Line = pl.Tensor[[1, 128], pl.FP32]
Merged = pl.Tensor[[1, 256], pl.FP32]


@pl.jit
def ordered(x: Scores, out: pl.Out[Pairs]):
    with pl.at(level=pl.Level.CORE_GROUP):
        counts = pl.col_expand(pl.create_tile([4, 64], dtype=pl.UINT32), pl.tile.ci(5, [1, 64], pl.UINT32))
        pl.store(pl.sort32(pl.load(x, [0, 0], [4, 64]), counts), [0, 0], out)


@pl.jit
def in_part(x: Line, out: pl.InOut[Merged]):
    with pl.at(level=pl.Level.CORE_GROUP):
        counts = pl.set_validshape(pl.tile.ci(0, [1, 128], pl.UINT32), 1, 40)
        pl.store(pl.sort32(pl.load(x, [0, 0], [1, 128], valid_shape=[1, 40]), counts), [0, 0], out)


@pl.jit
def merged(x: Line, out: pl.Out[Merged]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pairs = pl.sort32(pl.load(x, [0, 0], [1, 128]), pl.tile.ci(0, [1, 128], pl.UINT32))
        pl.store(pl.mrgsort(pairs, block_len=64), [0, 0], out)


@pl.jit
def lists(x: Line, out: pl.Out[pl.Tensor[[1, 192], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pairs = pl.sort32(pl.load(x, [0, 0], [1, 128]), pl.tile.ci(0, [1, 128], pl.UINT32))
        parts = pl.slice(pairs, [1, 64], [0, 0]), pl.slice(pairs, [1, 64], [0, 64]), pl.slice(pairs, [1, 64], [0, 128])
        room = pl.create_tile([1, 192], dtype=pl.FP32)
        pl.store(pl.mrgsort(parts[0], parts[1], parts[2], tmp=room), [0, 0], out)


@pl.jit
def unordered(x: Merged, out: pl.Out[Merged]):
    """Runs that are in no order give what was the larger of their next pairs, all the same."""
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.mrgsort(pl.load(x, [0, 0], [1, 256]), block_len=64), [0, 0], out)


def scores(*shape: int) -> Any:
    """Few different numbers, of which some are equal, zeros of both signs and NaN."""
    some = np.random.default_rng(0).integers(-6, 6, shape).astype(np.float32)
    some.flat[::17], some.flat[5::29] = np.nan, -0.0
    return some


@pl.jit
def halves(x: pl.Tensor[[3, 64], pl.FP16], out: pl.Out[pl.Tensor[[3, 128], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        counts = pl.col_expand(pl.create_tile([3, 64], dtype=pl.UINT32), pl.tile.ci(3, [1, 64], pl.UINT32))
        pl.store(pl.sort32(pl.load(x, [0, 0], [3, 64]), counts), [0, 0], out)


@pl.jit
def merged_halves(x: pl.Tensor[[1, 160], pl.FP16], out: pl.Out[pl.Tensor[[1, 320], pl.FP16]]):
    """Runs of which one is left over, which stays as it is."""
    with pl.at(level=pl.Level.CORE_GROUP):
        pairs = pl.sort32(pl.load(x, [0, 0], [1, 160]), pl.tile.ci(0, [1, 160], pl.UINT32))
        pl.store(pl.mrgsort(pairs, block_len=64), [0, 0], out)


@pl.jit
def lists_of_halves(x: pl.Tensor[[1, 128], pl.FP16], out: pl.Out[pl.Tensor[[1, 128], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pairs = pl.sort32(pl.load(x, [0, 0], [1, 128]), pl.tile.ci(0, [1, 128], pl.UINT32))
        first, second = pl.slice(pairs, [1, 64], [0, 0]), pl.slice(pairs, [1, 64], [0, 64])
        pl.store(pl.mrgsort(first, second, tmp=pl.create_tile([1, 128], dtype=pl.FP16)), [0, 0], out)


@pl.jit
def left_over(x: Merged, out: pl.Out[Merged]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.mrgsort(pl.load(x, [0, 0], [1, 256]), block_len=128), [0, 0], out)


CASES: dict[str, tuple[Any, Callable[[], list[Any]]]] = {
    "ordered": (ordered, lambda: [scores(4, 64), np.zeros((4, 128), np.float32)]),
    "in_part": (in_part, lambda: [scores(1, 128), np.zeros((1, 256), np.float32)]),
    "merged": (merged, lambda: [scores(1, 128), np.zeros((1, 256), np.float32)]),
    "unordered": (unordered, lambda: [scores(1, 256), np.zeros((1, 256), np.float32)]),
    "halves": (halves, lambda: [scores(3, 64).astype(np.float16), np.zeros((3, 128), np.float16)]),
    "merged_halves": (merged_halves, lambda: [scores(1, 160).astype(np.float16), np.zeros((1, 320), np.float16)]),
    "lists_of_halves": (lists_of_halves, lambda: [scores(1, 128).astype(np.float16), np.zeros((1, 128), np.float16)]),
    "left_over": (left_over, lambda: [scores(1, 256), np.zeros((1, 256), np.float32)]),
    "lists": (lists, lambda: [scores(1, 128), np.zeros((1, 192), np.float32)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_every_bit_is_the_same_when_it_is_read_back(name: str, platform: str) -> None:
    kernel, made = CASES[name]
    wanted, found = read_back(kernel, made, platform)
    assert wanted[1].any()
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


@pl.jit
def any_indices(x: Scores, i: pl.Tensor[[4, 64], pl.UINT32], out: pl.Out[Pairs]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.sort32(pl.load(x, [0, 0], [4, 64]), pl.load(i, [0, 0], [4, 64])), [0, 0], out)


@pytest.mark.parametrize(
    ("kernel", "given", "why"),
    [
        (any_indices, lambda: [scores(4, 64), np.zeros((4, 64), np.uint32), scores(4, 128)], "may not ascend"),
    ],
)
def test_what_would_be_another_order_shows_its_line(kernel: Any, given: Any, why: str) -> None:
    with pytest.raises(pto.NoPtoError, match=why) as caught:
        kernel.compile(*given()).as_pto()
    assert "^" in str(caught.value) and "help: " in str(caught.value)
