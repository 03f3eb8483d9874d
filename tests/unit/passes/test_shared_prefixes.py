"""Shared prefixes: tiles of causal attention fold together what all of them see, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright.language as pl
from tilewright.core.region import whole
from tilewright.interpret.machine import run
from tilewright.passes import shared_prefixes, turned_loads
from tilewright.passes.padded_rows import padded_rows
from tilewright.passes.product_grids import Wanted
from tilewright.runtime import RunConfig

WAYS = ("keys <= rows", "rows >= keys", "keys < rows", "keys <= rows, less", "keys >= rows - 40", "rows twice")


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor], rows: int, way: str):
    length, dim = k.shape
    for row in pl.parallel(0, q.shape[0], rows):
        with pl.at(level=pl.Level.CORE_GROUP):
            place = pl.iota([rows, 1], axis=0) + row
            queries = pl.load(q, [row, 0], [rows, dim])
            best = pl.tile.full([rows, 1], dtype=pl.FP32, value=-1e30)
            total = pl.tile.full([rows, 1], dtype=pl.FP32, value=0.0)
            average = pl.tile.full([rows, dim], dtype=pl.FP32, value=0.0)
            for first in pl.range(0, pl.min(row + row, length) if way == "rows twice" else row + rows, rows):
                scores = queries @ pl.load(k, [first, 0], [rows, dim]).T * (1 / math.sqrt(dim))
                keys = pl.arange(first, first + rows)
                if way == "keys <= rows" or way == "rows twice":
                    scores = pl.where(keys <= place, scores, -math.inf)
                if way == "rows >= keys":
                    scores = pl.where(place >= keys, scores, -math.inf)
                if way == "keys < rows":
                    scores = pl.where(keys < place, scores, -math.inf)
                if way == "keys <= rows, less":
                    scores = pl.where(keys <= place, scores, -1e20)
                if way == "keys >= rows - 40":
                    scores = pl.where(keys >= place - 40, scores, -math.inf)
                highest = pl.maximum(best, pl.max(scores, axis=-1, keepdims=True))
                weights, kept = pl.exp(scores - highest), pl.exp(best - highest)
                total = total * kept + pl.sum(weights, axis=-1, keepdims=True)
                average = average * kept + pl.cast(weights, v.dtype) @ pl.load(v, [first, 0], [rows, dim])
                best = highest
            pl.store(pl.cast(average / (total + 1e-6), out.dtype), [row, 0], out)
    return out


def matrices(length: int, dtype: Any = np.float32, dim: int = 32) -> list[NDArray[Any]]:
    draw = np.random.default_rng(length)
    return [draw.normal(size=(length, dim)).astype(dtype) for _ in "qkv"]


def stage(name: str, length: int = 512, rows: int = 32, way: str = WAYS[0]) -> str:
    given = matrices(length)
    return attention.compile(*given, np.zeros_like(given[0]), rows=rows, way=way).stages[name]


@pytest.mark.parametrize("way", WAYS[:-1])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("length", "rows"), [(512, 16), (600, 32), (540, 32), (777, 24)])
def test_they_are_what_each_tile_folds_by_itself(length: int, rows: int, dtype: Any, way: str) -> None:
    given = matrices(length, dtype)
    memory: NDArray[Any] = np.full((length + 64, 32), 7, dtype)
    expected: NDArray[Any] = np.zeros((length, 32), dtype)
    assert "for what comes before" in stage("tiles", length, rows, way)
    attention(*given, memory[:length], rows=rows, way=way)
    attention(*given, expected, rows=rows, way=way, config=RunConfig(platform="interpret"))
    close = 1e-5 if dtype == np.float32 else 2e-2
    np.testing.assert_allclose(memory[:length].astype(float), expected.astype(float), rtol=close, atol=close)
    assert (memory[length:] == 7).all()


@pytest.mark.parametrize("way", WAYS[:-1])
def test_processors_that_take_many_rows_at_once_share_what_taller_tiles_see(way: str) -> None:
    given, (found, expected) = matrices(777), np.zeros((2, 777, 32), np.float32)
    lowered = turned_loads.run(attention.lower(*given, found, rows=48, way=way))
    padded = lowered.with_functions([padded_rows(function) for function in lowered.function_list])
    shared, notes = shared_prefixes.run(padded, Wanted(many_queries=256, keys=256))
    assert any("by 96 instead of 48 for what comes before" in note for note in notes)
    run(shared, "attention", [*map(whole, (*given, found)), 48])
    attention(*given, expected, rows=48, way=way, config=RunConfig(platform="interpret"))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("length", "rows"), [(512, 16), (540, 32)])
def test_what_is_no_number_reaches_the_rows_that_it_reached(length: int, rows: int) -> None:
    q, k, v = matrices(length)
    v[100, 3], v[333, 1], k[length - 2, 0] = math.inf, math.nan, math.nan
    found, expected = np.zeros((2, length, 32), np.float32)
    attention(q, k, v, found, rows=rows, way=WAYS[0])
    attention(q, k, v, expected, rows=rows, way=WAYS[0], config=RunConfig(platform="interpret"))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))


@pytest.mark.parametrize(("way", "hides"), [*((way, False) for way in WAYS[:3]), *((way, True) for way in WAYS[3:5])])
def test_a_causal_mask_hides_nothing_of_a_prefix(way: str, hides: bool) -> None:
    first = stage("fusion", way=way).partition("rows 32:")[0]
    assert ("tile.where" in first) == hides


def test_rows_that_end_elsewhere_share_nothing() -> None:
    assert "for what comes before" not in stage("tiles", way="rows twice")
    assert "for what comes before" not in stage("tiles", rows=256)
    assert "for what comes before" not in stage("tiles", rows=31)
