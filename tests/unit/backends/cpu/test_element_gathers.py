"""Element gathers: few elements of a tile, taken where it was loaded from, are those that it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.errors import ExecutionError

RNG = np.random.default_rng(4)


def _places(rows: int) -> Any:
    return RNG.integers(0, 96, (rows, 5)).astype(np.int32)


@pl.jit
def few(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t, i = pl.load(x, [r, 0], [8, x.shape[1]]), pl.load(index, [r, 0], [8, index.shape[1]])
            found = pl.gather(t, dim=-1, index=i)  # pyright: ignore[reportArgumentType]
            pl.store(found, [r, 0], out)  # pyright: ignore[reportArgumentType]
    return out


@pytest.mark.parametrize("rows", [16, 13])
@pytest.mark.parametrize("apart", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_elements_are_taken_from_rows_wherever_these_lie(rows: int, apart: int, dtype: Any) -> None:
    whole: Any = (100 * RNG.standard_normal((rows, 96 * apart))).astype(dtype)
    x, index = whole[:, :96], _places(rows)
    out: Any = np.zeros((rows, 5), dtype)
    few(x, index, out)
    assert np.array_equal(out, np.take_along_axis(x, index.astype(np.int64), 1))


def test_an_index_past_a_row_is_refused() -> None:
    x: Any = np.zeros((8, 96), np.float32)
    index: Any = np.full((8, 5), 96, np.int32)
    with pytest.raises(ExecutionError, match="96"):
        few(x, index, np.zeros((8, 5), np.float32))


@pl.jit
def stored_over(x: pl.InOut[pl.Tensor], index: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t, i = pl.load(x, [0, 0], [8, 96]), pl.load(index, [0, 0], [8, 5])
        pl.store(t + 1.0, [0, 0], x)
        found = pl.gather(t, dim=-1, index=i)  # pyright: ignore[reportArgumentType]
        pl.store(found, [0, 0], out)  # pyright: ignore[reportArgumentType]
    return out


def test_what_is_stored_over_is_what_it_was() -> None:
    x: Any = RNG.standard_normal((8, 96), np.float32)
    out: Any = np.zeros((8, 5), np.float32)
    index, held = _places(8), x.copy()
    stored_over(x, index, out)
    assert np.array_equal(out, np.take_along_axis(held, index.astype(np.int64), 1)) and np.array_equal(x, held + 1)
