"""Transposes: tiles that are turned on the way from one tensor to another hold what the interpreter's hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright.language as pl
from tilewright.dtypes import BF16, FP8E4M3FN, FP16, FP32, FP64, INT8, INT16, INT32, DataType
from tilewright.runtime import RunConfig


@pl.jit
def turned(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int, columns: int):
    for r in pl.parallel(0, x.shape[0], rows):
        for c in pl.parallel(0, x.shape[1], columns):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.transpose(pl.load(x, [r, c], [rows, columns]), 0, 1), [c, r], out)


@pl.jit
def turned_in_place(x: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.transpose(pl.load(x, [0, 0], [48, 48]), 0, 1), [0, 0], x)


@pl.jit
def stored_in_between(x: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [32, 48])
        pl.store(pl.tile.full([32, 48], dtype=pl.FP32, value=-1.0), [0, 0], x)
        pl.store(pl.transpose(tile, 0, 1), [0, 0], out)


def numbers(dtype: DataType, shape: tuple[int, int]) -> NDArray[Any]:
    return np.random.default_rng(7).integers(-8, 8, shape).astype(dtype.numpy)


def flipped(array: NDArray[Any]) -> NDArray[Any]:
    """Return the transposed view of a matrix."""
    return np.swapaxes(array, 0, 1)


@pytest.mark.parametrize("dtype", [FP32, FP64, FP16, BF16, FP8E4M3FN, INT8, INT16, INT32], ids=str)
@pytest.mark.parametrize("tile", [(32, 32), (16, 64), (48, 17), (128, 128), (1, 64), (64, 1)])
def test_matrices_are_turned_on_the_way(dtype: DataType, tile: tuple[int, int]) -> None:
    x = numbers(dtype, (100, 130))
    out, interpreted = np.zeros((130, 100), dtype.numpy), np.zeros((130, 100), dtype.numpy)
    turned(x, out, *tile)
    turned(x, interpreted, *tile, config=RunConfig(platform="interpret"))
    assert np.array_equal(out, flipped(x))
    assert np.array_equal(interpreted, flipped(x))


@pl.jit
def copied(x: pl.Tensor, out: pl.Out[pl.Tensor], axis: int):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.transpose(pl.load(x, [0, 0], [5, 7]), axis, axis - 2), [0, 0], out)


@pytest.mark.parametrize("axis", [0, 1])
def test_an_axis_that_changes_places_with_itself_stays(axis: int) -> None:
    x, out = numbers(FP32, (5, 7)), np.zeros((5, 7), np.float32)
    copied(x, out, axis)
    assert np.array_equal(out, x)


@pytest.mark.parametrize("step", [(1, 2), (2, 1), (3, 3)])
def test_matrices_with_gaps_are_turned(step: tuple[int, int]) -> None:
    x = numbers(FP32, (96, 192))[:: step[0], :: step[1]]
    out = np.zeros(x.shape[::-1], np.float32)
    turned(x, out, 16, 32)
    assert np.array_equal(out, flipped(x))


def test_a_matrix_is_turned_where_it_lies() -> None:
    x = numbers(FP32, (48, 48))
    want = np.array(flipped(x))
    turned_in_place(x)
    assert np.array_equal(x, want)


def test_what_was_loaded_before_a_store_is_turned() -> None:
    x, out = numbers(FP32, (32, 48)), np.zeros((48, 32), np.float32)
    want = np.array(flipped(x))
    stored_in_between(x, out)
    assert np.array_equal(out, want)
    assert (x == -1).all()


def test_large_matrices_are_turned_past_the_caches() -> None:
    x, out = numbers(FP32, (1100, 1090)), np.zeros((1090, 1100), np.float32)
    turned(x, out, 64, 64)
    assert np.array_equal(out, flipped(x))
