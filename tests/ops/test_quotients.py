"""Quotients: integers are divided exactly, beside every multiple and at the ends of their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.runtime import RunConfig

Words = np.ndarray[Any, np.dtype[Any]]


@pl.jit
def divided(
    x: pl.Tensor, y: pl.Tensor, floor: pl.Out[pl.Tensor], rest: pl.Out[pl.Tensor],
    whole: pl.Out[pl.Tensor], left: pl.Out[pl.Tensor],
):  # fmt: skip
    for r in pl.parallel(0, x.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            a, b = pl.load(x, [r, 0], [64, x.shape[1]]), pl.load(y, [r, 0], [64, x.shape[1]])
            pl.store(a // b, [r, 0], floor)
            pl.store(a % b, [r, 0], rest)
            pl.store(pl.div(a, b), [r, 0], whole)
            pl.store(pl.fmod(a, b), [r, 0], left)


@pl.jit
def divided_by_seven(x: pl.Tensor, floor: pl.Out[pl.Tensor], rest: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [r, 0], [64, x.shape[1]])
            pl.store(a // 7, [r, 0], floor)
            pl.store(a % 7, [r, 0], rest)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers_are_divided_exactly(target: str, dtype: str) -> None:
    x, y = _pairs(np.dtype(dtype))
    found = [np.empty_like(x) for _ in range(4)]
    divided(x, y, *found, config=RunConfig(platform=target))
    a, b = x.astype(np.int64), y.astype(np.int64)
    floor = np.where(b == 0, 0, a // np.where(b == 0, 1, b))
    whole = floor + ((floor * b != a) & ((a < 0) != (b < 0)) & (b != 0))
    rests = [np.where(b == 0, 0, a - quotient * b) for quotient in (floor, whole)]
    for name, got, wanted in zip(("//", "%", "div", "fmod"), found, (floor, rests[0], whole, rests[1]), strict=True):
        np.testing.assert_array_equal(got, wanted.astype(dtype), err_msg=name)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers_are_divided_by_a_number_in_the_code(target: str, dtype: str) -> None:
    x, _ = _pairs(np.dtype(dtype))
    floor, rest = np.empty_like(x), np.empty_like(x)
    divided_by_seven(x, floor, rest, config=RunConfig(platform=target))
    np.testing.assert_array_equal(floor, x // np.array(7, dtype))
    np.testing.assert_array_equal(rest, x % np.array(7, dtype))


def _pairs(dtype: np.dtype[Any]) -> tuple[Words, Words]:
    """Return all pairs of small numbers; of others the ends of their type and the neighbours of multiples."""
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if dtype.itemsize == 1:
        rows, columns = np.meshgrid(*[np.arange(least, most + 1)] * 2)
        return rows.astype(dtype), columns.astype(dtype)
    ends = [least, least + 1, -3, -1, 0, 1, 2, 3, 7, 255, 256, 257, most // 3, most // 2, most - 1, most]
    numbers = np.concatenate([np.array(ends).clip(least, most), np.random.default_rng(0).integers(least, most, 48)])
    divisors = np.where(numbers == 0, 1, numbers)[:, None]
    multiples = (numbers // divisors) * divisors
    rows = np.concatenate([np.broadcast_to(numbers, multiples.shape), multiples - 1, multiples, multiples + 1])
    columns = np.concatenate([np.broadcast_to(numbers[:, None], multiples.shape)] * 4)
    return rows.clip(least, most).astype(dtype), columns.astype(dtype)
