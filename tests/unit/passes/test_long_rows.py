"""Long rows: grids of short tiles go along the rows of their tensors, and compute what they did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.runtime import RunConfig

M, N = pl.dynamic("M"), pl.dynamic("N")
Dynamic = pl.Tensor[[M, N], pl.FP32]


@pl.jit
def scaled(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int, columns: int):
    for r in pl.parallel(0, x.shape[0], rows):
        for c in pl.parallel(0, x.shape[1], columns):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [r, c], [rows, columns]) * 2.0, [r, c], out)
    return out


@pl.jit
def scaled_dynamic(x: Dynamic, out: pl.Out[Dynamic], rows: int, columns: int):
    for r in pl.parallel(0, M, rows):
        for c in pl.parallel(0, N, columns):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [r, c], [rows, columns]) * 2.0, [r, c], out)
    return out


@pl.jit
def columns_outside(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int, columns: int):
    for c in pl.parallel(0, x.shape[1], columns):
        for r in pl.parallel(0, x.shape[0], rows):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [r, c], [rows, columns]) * 2.0, [r, c], out)
    return out


@pl.jit
def mixed(
    x: pl.Tensor, row: pl.Tensor, column: pl.Tensor, held: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor],
    rows: int, columns: int,
):  # fmt: skip
    for r in pl.parallel(0, x.shape[0], rows):
        for c in pl.parallel(0, x.shape[1], columns):
            with pl.at(level=pl.Level.CORE_GROUP):
                t, kept = pl.load(x, [r, c], [rows, columns]), pl.load(held, [r, c], [rows, columns])
                weighted = t * pl.load(row, [0, c], [1, columns]) + pl.load(column, [r, 0], [rows, 1])
                pl.store(pl.where(t > 0.0, weighted, kept), [r, c], held)
                pl.store(pl.cast(weighted, pl.INT8), [r, c], out)


@pl.jit
def folded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 16):
        for c in pl.parallel(0, x.shape[1], 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r, c], [16, 16])
                pl.store(t - pl.max(t, axis=-1, keepdims=True), [r, c], out)
    return out


@pl.jit
def numbered(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 16):
        for c in pl.parallel(0, x.shape[1], 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [r, c], [16, 16]) + pl.cast(pl.arange(16), pl.FP32), [r, c], out)
    return out


@pl.jit
def read_back(x: pl.Tensor, held: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 16):
        for c in pl.parallel(0, x.shape[1], 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [r, c], [16, 16]) * 2.0, [r, c], held)
                pl.store(pl.load(held, [r, c], [16, 16]) + 1.0, [r, c], out)


@pl.jit
def flattened(x: pl.Tensor, row: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 1):
        for c in pl.parallel(0, x.shape[1], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r, c], [1, 64])
                line = pl.reshape(t, [64]) * pl.load(row, [c], [64])
                pl.store(pl.reshape(line, [1, 64]) + t, [r, c], out)
    return out


@pl.jit
def lifted(x: pl.Tensor, row: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 16):
        for c in pl.parallel(0, x.shape[1], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r, c], [16, 64])
                weights = pl.reshape(pl.load(row, [c], [64]), [1, 1, 64])
                lifted = pl.reshape(t, [1, 16, 64]) * weights
                pl.store(pl.reshape(lifted, [16, 64]) + t, [r, c], out)
    return out


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def tiles(kernel: Any, *args: Any) -> str:
    return str(kernel.compile(*args).stages["tiles"]).strip()


WRITTEN = "every tile is as it was written"


@pytest.mark.parametrize("kernel", [scaled, scaled_dynamic, columns_outside], ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (64, 1024), (33, 65), (100, 5000), (130, 4096)], ids=str)
@pytest.mark.parametrize("tile", [(32, 64), (8, 24), (1, 16), (64, 1)], ids=str)
def test_every_element_is_computed_once_wherever_tiles_end(
    target: str, kernel: Any, shape: tuple[int, int], tile: tuple[int, int]
) -> None:
    x = numbers(*shape)
    out = np.full_like(x, np.nan)
    if target == "interpret" and x.size > 10000 and tile[1] < 24:
        pytest.skip("hundreds of thousands of turns")
    kernel(x, out, *tile, config=RunConfig(platform=target))
    np.testing.assert_array_equal(out, x * 2)


@pytest.mark.parametrize("shape", [(64, 1024), (33, 1000), (7, 4100)], ids=str)
def test_what_is_repeated_or_updated_or_narrowed_is_the_same(target: str, shape: tuple[int, int]) -> None:
    x, row, column, held = numbers(*shape), numbers(1, shape[1]), numbers(shape[0], 1), numbers(*shape)
    weighted, out = x * row + column, np.zeros(shape, np.int8)
    wanted = held.copy()
    wanted[x > 0] = weighted[x > 0]
    mixed(x, row, column, held, out, 32, 64, config=RunConfig(platform=target))
    np.testing.assert_allclose(held, wanted, rtol=1e-6, atol=1e-6)
    assert np.abs(out - np.rint(weighted)).max() <= 1


AXES_OF_ONE = pytest.mark.parametrize("kernel", [flattened, lifted], ids=lambda kernel: kernel.__name__)


@AXES_OF_ONE
@pytest.mark.parametrize("shape", [(1, 1), (33, 1000), (7, 4100)], ids=str)
def test_axes_of_one_element_come_and_go(target: str, kernel: Any, shape: tuple[int, int]) -> None:
    x, row = numbers(*shape), numbers(shape[1])
    out = np.full_like(x, np.nan)
    kernel(x, row, out, config=RunConfig(platform=target))
    np.testing.assert_allclose(out, x * row + x, rtol=1e-6, atol=1e-6)


@AXES_OF_ONE
def test_axes_of_one_element_leave_rows_long(kernel: Any) -> None:
    x, row = numbers(64, 1024), numbers(1024)
    assert tiles(kernel, x, row, x) == f"{kernel.__name__}_incore_0: c by 1024 instead of 64"


def test_the_chosen_columns_are_told() -> None:
    x = numbers(64, 1024)
    assert tiles(scaled, x, x, 64, 64) == "scaled_incore_0: c by 1024 instead of 64"


def test_tiles_are_not_longer_than_the_caches_have_use_for() -> None:
    x = numbers(4, 20000)
    assert tiles(scaled, x, x, 4, 64) == "scaled_incore_0: c by 4032 instead of 64"


@pytest.mark.parametrize("kernel", [folded, numbered], ids=lambda kernel: kernel.__name__)
def test_tiles_whose_elements_know_their_place_stay_as_they_are(kernel: Any) -> None:
    x = numbers(64, 64)
    assert tiles(kernel, x, np.empty_like(x)) == WRITTEN


def test_what_is_read_again_stays_in_the_caches() -> None:
    x = numbers(64, 64)
    assert tiles(read_back, x, np.empty_like(x), np.empty_like(x)) == WRITTEN
