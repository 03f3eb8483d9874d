"""Tensors and tiles of which a part is valid, as PTO text: read back, they give every bit."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from property.exported import read_back

import tilewright.language as pl

BOTH = pytest.mark.parametrize("platform", ["interpret", "cpu"])


def check(kernel: Any, *arguments: Any, platform: str = "interpret") -> None:
    wanted, found = read_back(
        kernel, lambda: [np.copy(each) if np.ndim(each) else each for each in arguments], platform
    )
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(*(np.asarray(each, np.float64) for each in (got, want)))


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


# tensors


@pl.jit
def narrowed(x: pl.Tensor, ns: pl.Tensor, out: pl.Out[pl.Tensor], told: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.read(ns, [0])
        some = pl.tensor.set_validshape(x, rows, 9)
        part = pl.tensor.slice(some, [8, 16], [2, 4], valid_shape=[7, 4])
        turned = pl.transpose(part, 0, 1)
        pl.store(pl.load(some, [0, 0], [16, 24]), [0, 0], out)
        pl.store(pl.load(part, [0, 0], [8, 16]) + 1.0, [0, 24], out)
        pl.store(pl.load(turned, [0, 0], [16, 8]) + 2.0, [16, 0], out)
        pl.store(pl.load(part, [0, 0], [8, 16], pad=5.0), [16, 24], out)
        pl.tensor.write(told, [0, 0], pl.tensor.dim(some, 0, valid=True))
        pl.tensor.write(told, [0, 1], pl.tensor.dim(part, 1, valid=True))
        pl.tensor.write(told, [0, 2], pl.tensor.dim(part, 0, valid=True))


@BOTH
@pytest.mark.parametrize("rows", [2, 3, 5, 16])
def test_loads_of_tensors_of_which_a_part_is_valid(rows: int, platform: str) -> None:
    out, told = np.zeros((40, 48), np.float32), np.zeros((1, 3), np.int64)
    check(narrowed, numbers(16, 24), np.array([rows]), out, told, platform=platform)


@pl.jit
def shown(x: pl.Tensor, ns: pl.Tensor, out: pl.Out[pl.Tensor], words: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.read(ns, [0])
        some = pl.tensor.set_validshape(x, rows, 24)
        lines = pl.tensor.reshape(some, [32, 12])
        third = pl.tensor.strided(some, [3, 5])
        window = pl.tensor.reshape(pl.tensor.slice(x, [6, 7], [1, 2]), [6, 1, 7])
        seen = pl.tensor.view(pl.tensor.set_validshape(x, rows, 9), valid_shape=[rows, 4], layout=pl.DN)
        halves = pl.tensor.reinterpret_view(pl.tensor.set_validshape(x, rows, 9), pl.INT16)
        pl.store(pl.load(lines, [0, 0], [32, 12]), [0, 0], out)
        pl.store(pl.load(third, [0, 0], [6, 5]) + 1.0, [0, 20], out)
        pl.store(pl.reshape(pl.load(window, [0, 0, 0], [6, 1, 7], pad=3.0), [6, 7]), [10, 20], out)
        pl.store(pl.load(seen, [0, 0], [24, 16]), [20, 20], out)
        pl.store(pl.load(halves, [0, 0], [16, 48]), [0, 0], words)


@BOTH
@pytest.mark.parametrize("rows", [1, 4, 6])
def test_views_of_tensors_of_which_a_part_is_valid(rows: int, platform: str) -> None:
    out, words = np.zeros((48, 48), np.float32), np.zeros((16, 48), np.int16)
    check(shown, numbers(16, 24), np.array([rows]), out, words, platform=platform)


@pl.jit
def copied(x: pl.Tensor, ns: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.read(ns, [0])
        some = pl.tensor.set_validshape(x, rows, 9)
        out = pl.assemble(out, some, [2, 3])
        out = pl.assemble(out, pl.tensor.slice(some, [2, 24], [1, 0]), [30, 1])
        pl.store(pl.load(some, [0, 0], [16, 24], mask=pl.load(some, [0, 0], [16, 24], pad=0.0) > 2.0), [20, 20], out)


@BOTH
@pytest.mark.parametrize("rows", [2, 4, 16])
def test_copies_of_tensors_of_which_a_part_is_valid(rows: int, platform: str) -> None:
    check(copied, numbers(16, 24), np.array([rows]), np.zeros((48, 48), np.float32), platform=platform)


# rows and columns of nothing


@pl.jit
def folded(x: pl.Tensor, ns: pl.Tensor, rows: pl.Out[pl.Tensor], columns: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        narrow, low = pl.load(x, [0, 0], [8, 16], valid_shape=[8, 0]), pl.load(x, [0, 0], [8, 16], valid_shape=[0, 16])
        open_ = pl.load(x, [0, 0], [8, 16], valid_shape=[8, pl.read(ns, [0])])
        one = pl.load(x, [0, 0], [8, 1], valid_shape=[8, pl.read(ns, [0])])
        pl.store(pl.row_sum(narrow), [0, 0], rows)
        pl.store(pl.row_max(narrow), [0, 1], rows)
        pl.store(pl.row_min(open_), [0, 2], rows)
        pl.store(pl.row_prod(narrow), [0, 3], rows)
        pl.store(pl.row_sum(open_), [0, 4], rows)
        pl.store(pl.row_max(one), [0, 5], rows)
        pl.store(pl.col_sum(low), [0, 0], columns)
        pl.store(pl.col_max(low), [1, 0], columns)
        pl.store(pl.col_min(low), [2, 0], columns)
        pl.store(pl.col_prod(low) + 1, [3, 0], columns)


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int16])
def test_folds_of_nothing(dtype: Any, platform: str) -> None:
    for count in (0, 1):
        x = numbers(8, 16).astype(dtype)
        check(folded, x, np.array([count]), np.zeros((8, 6), dtype), np.zeros((4, 16), dtype), platform=platform)


@pl.jit
def windows_put(x: pl.Tensor, ns: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t, n = pl.load(x, [0, 0], [16, 24]), pl.read(ns, [0])
        t = pl.tile.gather_row(t, x, [3, 4], [1, 2], [8, 9], valid_shape=[n, 5])
        t = pl.tile.gather_row(t, x, [0, 0], [2, 2], [3, 4], valid_shape=[2, 3])
        pl.store(pl.tile.gather_row(t, x, [9, 9], [n, 1], [3, 4], transpose=True), [0, 0], out)


@BOTH
@pytest.mark.parametrize("count", [0, 3, 8])
def test_windows_put_over_tiles_as_far_as_they_are_valid(count: int, platform: str) -> None:
    check(windows_put, numbers(16, 24), np.array([count]), np.zeros((16, 24), np.float32), platform=platform)


# tiles that meet


@pl.jit
def unlike(x: pl.Tensor, ns: pl.Tensor, out: pl.Out[pl.Tensor], line: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 24])
        some, few = pl.set_validshape(t, pl.read(ns, [0]), 9), pl.cast(pl.set_validshape(t, 12, 5), pl.INT32)
        pl.store(pl.xor(pl.cast(some, pl.INT32), pl.cast(t, pl.INT32)), [0, 0], out)
        pl.store(pl.cast(few, pl.INT32) // (few * few + 1) + pl.shl(few, pl.cast(t, pl.INT32) & 3), [0, 24], out)
        column = pl.cast(pl.cast(pl.load(x, [0, 0], [8, 1]), pl.INT8), pl.INT32)
        pl.store(pl.and_(column, 7) + pl.xor(column, column * 2), [0, 0], line)


@BOTH
@pytest.mark.parametrize("count", [0, 3, 16])
def test_tiles_that_are_valid_unlike_each_other(count: int, platform: str) -> None:
    out, line = np.zeros((16, 48), np.int32), np.zeros((8, 1), np.int32)
    check(unlike, numbers(16, 24), np.array([count]), out, line, platform=platform)


@pl.jit
def line_of_nothing(x: pl.Tensor, ns: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [3, 0], [1, 24])
        pl.store(pl.set_validshape(t, 0, 24), [0, 0], out)
        pl.store(pl.set_validshape(t, pl.read(ns, [0]), 24) + 1.0, [1, 0], out)


@BOTH
@pytest.mark.parametrize("count", [0, 1])
def test_a_row_of_which_nothing_is_valid_is_not_stored(count: int, platform: str) -> None:
    check(line_of_nothing, numbers(16, 24), np.array([count]), np.zeros((16, 24), np.float32), platform=platform)


@pl.jit
def grown(x: pl.Tensor, ns: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        n, m = pl.read(ns, [0]), pl.read(ns, [1])
        t, more = pl.load(x, [0, 0], [16, 24], valid_shape=[n, 6]), pl.load(x, [0, 0], [3, 6], valid_shape=[m, 6])
        pl.store(pl.tile.assemble(t, more, [2, 0]), [0, 0], out)
        pl.store(pl.tile.assemble(pl.set_validshape(t, n, 4), pl.load(x, [5, 0], [2, 6]), [1, 0]) + 1.0, [0, 8], out)


@BOTH
@pytest.mark.parametrize(("rows", "more"), [(2, 3), (2, 0), (3, 1), (9, 2)])
def test_a_tile_grows_by_what_is_put_behind_it(rows: int, more: int, platform: str) -> None:
    check(grown, numbers(16, 24), np.array([rows, more]), np.zeros((16, 24), np.float32), platform=platform)
