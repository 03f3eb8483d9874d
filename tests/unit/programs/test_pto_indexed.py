"""Elements by index, places of extremes, random bits and parts as PTO text: read back, they give every bit."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from property.exported import read_back

import tilewright.language as pl

Matrix = pl.Tensor[[16, 64], pl.FP32]
Words = pl.Tensor[[16, 64], pl.INT32]
Line = pl.Tensor[[256], pl.FP32]
Eight = pl.Tensor[[1, 8], pl.INT32]


@pl.jit
def taken(x: Line, i: Words, out: pl.Out[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.take(x, pl.load(i, [0, 0], [16, 64])), [0, 0], out)


@pl.jit
def counted(x: Matrix, i: Words, out: pl.Out[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.take(x, pl.load(i, [0, 0], [16, 64]), axis=None), [0, 0], out)


@pl.jit
def put(x: Matrix, i: Words, out: pl.InOut[Line]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.put(out, pl.load(i, [0, 0], [16, 64]), pl.load(x, [0, 0], [16, 64]))


@pl.jit
def summed(x: Matrix, i: Words, out: pl.InOut[Line]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.atomic_add(out, pl.load(i, [0, 0], [16, 64]), pl.load(x, [0, 0], [16, 64]))


@pl.jit
def largest(x: Matrix, i: Words, out: pl.InOut[Line]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.atomic_max(out, pl.load(i, [0, 0], [16, 64]), pl.load(x, [0, 0], [16, 64]))


@pl.jit
def drawn(out: pl.Out[Words]):
    with pl.at(level=pl.Level.CORE_GROUP):
        bits = pl.tile.random(3000000000, 2, 3, 4, 5, 6, [16, 64], dtype=pl.INT32, rounds=7)
        pl.system.bar_all()
        pl.store(bits, [0, 0], out)


@pl.jit
def triangles(out: pl.Out[Words]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.tile.tri(3, [16, 64]) - pl.tile.tri(-2, [16, 64], upper=True), [0, 0], out)


@pl.jit
def partly(x: Matrix, out: pl.Out[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        some = pl.load(x, [4, 0], [16, 64], valid_shape=[5, 64])
        pl.store(pl.part_max(pl.part_add(t, some), some), [0, 0], out)


@pl.jit
def places(x: Matrix, out: pl.Out[pl.Tensor[[16, 1], pl.INT32]], down: pl.Out[pl.Tensor[[1, 64], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        pl.store(pl.row_argmax(t, t), [0, 0], out)
        pl.store(pl.col_argmin(t, t), [0, 0], down)


@pl.jit
def rows(x: Matrix, i: Eight, out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.mgather(x, pl.load(i, [0, 0], [1, 8]), gather_oob="zero"), [0, 0], out)


@pl.jit
def some_rows(x: pl.Tensor[[4, 4, 64], pl.FP32], i: pl.Tensor[[8, 1], pl.INT32], out: pl.InOut[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.mgather(x, pl.load(i, [0, 0], [8, 1], valid_shape=[5, 1]), gather_oob="wrap"), [0, 0], out)


@pl.jit
def elements(x: Matrix, i: Words, out: pl.Out[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.mgather(x, pl.load(i, [0, 0], [16, 64]), "elem", gather_oob="clamp"), [0, 0], out)


@pl.jit
def scattered(x: Matrix, i: Words, out: pl.InOut[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.mscatter(pl.load(x, [0, 0], [16, 64]), pl.load(i, [0, 0], [16, 64]), out)


@pl.jit
def picked(x: Matrix, i: Words, out: pl.Out[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.tile.gather(pl.load(x, [0, 0], [16, 64]), pl.load(i, [0, 0], [16, 64])), [0, 0], out)


@pl.jit
def columns(x: Matrix, out: pl.Out[pl.Tensor[[16, 32], pl.FP32]], few: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        pl.store(pl.tile.gather_mask(t, pl.tile.MaskPattern.P1010), [0, 0], out)
        pl.store(pl.tile.gather_mask(t, pl.tile.MaskPattern.P0100), [0, 0], few)


@pl.jit
def rows_taken(x: Matrix, i: Eight, out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.take(x, pl.load(i, [0, 0], [1, 8])), [0, 0], out)


@pl.jit
def rows_put(x: pl.Tensor[[8, 64], pl.FP32], i: Eight, out: pl.InOut[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.put(out, pl.load(i, [0, 0], [1, 8]), pl.load(x, [0, 0], [8, 64]))


@pl.jit
def rows_summed(x: pl.Tensor[[8, 64], pl.FP32], i: Eight, out: pl.InOut[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.atomic_add(out, pl.load(i, [0, 0], [1, 8]), pl.load(x, [0, 0], [8, 64]))


@pl.jit
def before(x: Matrix, i: Words, out: pl.InOut[Line], old: pl.Out[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.atomic_add(out, pl.load(i, [0, 0], [16, 64]), pl.load(x, [0, 0], [16, 64])), [0, 0], old)


@pl.jit
def where(x: Matrix, i: Words, out: pl.InOut[Line], old: pl.Out[Matrix]):
    """Elements that a mask chooses: taken, put and combined."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t, places = pl.load(x, [0, 0], [16, 64]), pl.load(i, [0, 0], [16, 64])
        found = pl.take(out, places, mask=t > 0.0, pad=-7.0)
        pl.put(out, places, t, mask=t < -1.0)
        pl.store(found + pl.atomic_max(out, places, t, mask=t > 1.0), [0, 0], old)


@pl.jit
def bits(i: Words, out: pl.InOut[pl.Tensor[[256], pl.INT32]], old: pl.Out[Words]):
    """Atomic ops that only one element after the other has."""
    with pl.at(level=pl.Level.CORE_GROUP):
        places = pl.load(i, [0, 0], [16, 64])
        first = pl.atomic_xor(out, places, places) + pl.atomic_or(out, places, 5) + pl.atomic_and(out, places, 13)
        second = pl.atomic_xchg(out, places, places) + pl.atomic_cas(out, places, 3, places)
        pl.store(first + second + pl.atomic_min(out, places, 100), [0, 0], old)


@pl.jit
def two_indices(
    x: Matrix,
    r: pl.Tensor[[1, 32], pl.INT32],
    c: pl.Tensor[[1, 32], pl.INT32],
    out: pl.Out[pl.Tensor[[1, 32], pl.FP32]],
):
    """Elements by row and column, which are counted in 64 bits."""
    with pl.at(level=pl.Level.CORE_GROUP):
        places = pl.ravel_index(pl.load(r, [0, 0], [1, 32]), pl.load(c, [0, 0], [1, 32]), [16, 64])
        pl.store(pl.take(x, places, axis=None), [0, 0], out)


@pl.jit
def window(x: Matrix, y: Matrix, out: pl.Out[Matrix]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(y, [0, 0], [16, 64])
        pl.store(
            pl.gather_row(t, x, [3, 5], [2, 1], [4, 9]) + pl.gather_row(t, x, [1, 7], [0, 0], [8, 8], True), [0, 0], out
        )


def floats(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def indices() -> Any:
    return np.random.default_rng(1).integers(0, 256, (16, 64)).astype(np.int32)


def few() -> Any:
    """Rows by number, of which some come twice."""
    return np.array([[3, 15, 3, 0, 7, 7, 9, 1]], np.int32)


def outside(*shape: int) -> Any:
    """Indices of which every third is larger than there are rows or elements, or negative."""
    made = np.random.default_rng(2).integers(0, 16, shape).astype(np.int32)
    made.flat[::3], made.flat[1::6] = 5000, -7
    return made


@pl.jit
def by_longs(x: Matrix, i: pl.Tensor, out: pl.Out[pl.Tensor], summed: pl.InOut[Matrix]):
    """Rows that indices name as torch has them."""
    with pl.at(level=pl.Level.CORE_GROUP):
        places = pl.load(i, [0], [8])
        found = x[places]
        pl.store(found, [0, 0], out)
        pl.atomic_add(summed, places, found)
        pl.put(summed, places, found * 2.0)


@pl.jit
def at_corners(x: Matrix, i: pl.Tensor, j: pl.Tensor, out: pl.Out[pl.Tensor]):
    """An index for each row, and one for each column."""
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(x[pl.load(i, [0, 0], [6, 1]), pl.load(j, [0, 0], [1, 7])], [0, 0], out)


@pl.jit
def drawn_down(ns: pl.Tensor, out: pl.Out[pl.Tensor[[16, 3], pl.INT32]], floats: pl.Out[pl.Tensor]):
    """A column of words, some of one, and numbers of which a part is valid along three axes."""
    with pl.at(level=pl.Level.CORE_GROUP):
        n = pl.read(ns, [0])
        pl.store(pl.tile.random(1, 2, 3, 4, 5, 6, [16, 1], dtype=pl.INT32), [0, 0], out)
        some = pl.tile.random(7, 2, 3, 4, 5, 6, [16, 1], dtype=pl.INT32, valid_shape=[n, 1], rounds=7)
        pl.store(some, [0, 1], out)
        pl.store(pl.rand(7, [3, 16, 4], valid_shape=[2, n, 3]), [0, 0, 0], floats)


CASES: dict[str, tuple[Any, Callable[[], list[Any]]]] = {
    "before": (before, lambda: [floats(16, 64), indices(), floats(256), floats(16, 64)]),
    "where": (where, lambda: [floats(16, 64), indices(), floats(256), floats(16, 64)]),
    "bits": (bits, lambda: [indices(), np.arange(256, dtype=np.int32), indices()]),
    "two_indices": (
        two_indices,
        lambda: [floats(16, 64), np.resize(few(), (1, 32)), np.resize(few() * 4, (1, 32)), floats(1, 32)],
    ),
    "window": (window, lambda: [floats(16, 64), floats(16, 64), floats(16, 64)]),
    "taken": (taken, lambda: [floats(256), indices(), floats(16, 64)]),
    "counted": (counted, lambda: [floats(16, 64), indices(), floats(16, 64)]),
    "put": (put, lambda: [floats(16, 64), indices(), floats(256)]),
    "summed": (summed, lambda: [floats(16, 64), indices(), floats(256)]),
    "largest": (largest, lambda: [floats(16, 64), indices(), floats(256)]),
    "rows": (rows, lambda: [floats(16, 64), outside(1, 8), floats(8, 64)]),
    "some_rows": (some_rows, lambda: [floats(4, 4, 64), outside(8, 1), floats(16, 64)]),
    "elements": (elements, lambda: [floats(16, 64), outside(16, 64), floats(16, 64)]),
    "scattered": (scattered, lambda: [floats(16, 64), indices(), floats(16, 64)]),
    "picked": (picked, lambda: [floats(16, 64), indices(), floats(16, 64)]),
    "columns": (columns, lambda: [floats(16, 64), floats(16, 32), floats(16, 16)]),
    "rows_taken": (rows_taken, lambda: [floats(16, 64), few(), floats(8, 64)]),
    "rows_put": (rows_put, lambda: [floats(8, 64), few(), floats(16, 64)]),
    "rows_summed": (rows_summed, lambda: [floats(8, 64), few(), floats(16, 64)]),
    "by_longs": (by_longs, lambda: [floats(16, 64), few()[0].astype(np.int64), floats(8, 64), floats(16, 64)]),
    "at_corners": (
        at_corners,
        lambda: [floats(16, 64), np.arange(6)[:, None] * 3, np.arange(7)[None] * 9, floats(6, 7)],
    ),
    "drawn": (drawn, lambda: [np.zeros((16, 64), np.int32)]),
    "drawn_down": (
        drawn_down,
        lambda: [np.array([5]), np.zeros((16, 3), np.int32), np.zeros((3, 16, 4), np.float32)],
    ),
    "triangles": (triangles, lambda: [np.zeros((16, 64), np.int32)]),
    "partly": (partly, lambda: [floats(16, 64), floats(16, 64)]),
    "places": (places, lambda: [floats(16, 64), np.zeros((16, 1), np.int32), np.zeros((1, 64), np.int32)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_every_bit_is_the_same_when_it_is_read_back(name: str, platform: str) -> None:
    kernel, made = CASES[name]
    wanted, found = read_back(kernel, made, platform)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
