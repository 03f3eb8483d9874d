"""Indexed memory: rows and elements taken and put where indices say, against NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from ops.indexed import computed, refused, sample

import tilewright.language as pl
from tilewright.dtypes import DataType

np: Any = numpy  # their stubs leave most of what is used here half typed
RNG = np.random.default_rng(7)


def same(got: Any, want: Any) -> None:
    assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes(), (got, want)


@pytest.mark.parametrize(
    ("dtype", "index_type"),
    [(pl.FP32, pl.INT32), (pl.BF16, pl.INT64), (pl.INT8, pl.UINT8), (pl.INT64, pl.INT16), (pl.FP8E4M3FN, pl.INT32)],
    ids=str,
)
def test_rows_are_taken_and_put(dtype: DataType, index_type: DataType) -> None:
    x, held = sample(RNG, dtype, 6, 3, 21), sample(RNG, dtype, 8, 3, 21)
    index, mask = RNG.integers(0, 6, (8, 1)).astype(index_type.numpy), RNG.integers(0, 2, (8, 1)) > 0
    body = (
        "i = pl.load(index, [0, 0], [8, 1], valid_shape=[n, 1])\nm = pl.load(mask, [0, 0], [8, 1])\n"
        "out = pl.store(pl.take(x, i), [0, 0, 0], out)\n"
        "out_some = pl.store(pl.take(x, i, mask=m, pad=2), [0, 0, 0], out_some)\n"
        "v = pl.load(held, [0, 0, 0], [8, 3, 21], valid_shape=[n, 3, 21])\n"
        "out_put = pl.put(out_put, i, v)\nout_masked = pl.put(out_masked, i, v, mask=m)\npl.put(out_one, i, 1)"
    )
    for n in (8, 5, 0):
        given = {"out": held, "out_some": held, "out_put": x, "out_masked": x, "out_one": x}
        found = computed(body, x=x, index=index, mask=mask, held=held, **given, n=n)
        places, chosen = index[:n, 0].astype(int), mask[:n, 0]
        taken, some, put, masked, one = held.copy(), held.copy(), x.copy(), x.copy(), x.copy()
        taken[:n] = x[places]
        some[:n] = np.where(chosen[:, None, None], x[places], np.asarray(2).astype(x.dtype))
        for k, place in enumerate(places):
            put[place], one[place] = held[k], np.asarray(1).astype(x.dtype)
            masked[place] = held[k] if chosen[k] else masked[place]
        for got, want in zip(found, (taken, some, put, masked, one), strict=True):
            same(got, want)


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16, pl.INT64], ids=str)
def test_elements_are_taken_and_put(dtype: DataType) -> None:
    x, line, held = sample(RNG, dtype, 5, 7), sample(RNG, dtype, 35), sample(RNG, dtype, 2, 40)
    index, mask = RNG.integers(0, 35, (2, 40)).astype(np.int32), RNG.integers(0, 2, (2, 40)) > 0
    body = (
        "i = pl.load(index, [0, 0], [2, 40], valid_shape=[2, n])\nm = pl.load(mask, [0, 0], [2, 40])\n"
        "out = pl.store(pl.take(x, i, axis=None), [0, 0], out)\n"
        "out_line = pl.store(pl.take(line, i), [0, 0], out_line)\n"
        "out_some = pl.store(pl.take(line, i, mask=m, pad=3), [0, 0], out_some)\n"
        "v = pl.load(held, [0, 0], [2, 40], valid_shape=[2, n])\n"
        "pl.put(out_put, i, v, axis=None)\npl.put(out_put_line, i, v, mask=m)"
    )
    for n in (40, 13):
        given = {"out": held, "out_line": held, "out_some": held, "out_put": x, "out_put_line": line}
        found = computed(body, x=x, line=line, index=index, mask=mask, held=held, **given, n=n)
        taken, from_line, some, put, put_line = (array.copy() for array in given.values())
        places, chosen = index[:, :n], mask[:, :n]
        taken[:, :n], from_line[:, :n] = x.reshape(-1)[places], line[places]
        some[:, :n] = np.where(chosen, line[places], np.asarray(3).astype(x.dtype))
        for at in np.ndindex(places.shape):
            put.reshape(-1)[places[at]] = held[at]
            put_line[places[at]] = held[at] if chosen[at] else put_line[places[at]]
        for got, want in zip(found, (taken, from_line, some, put, put_line), strict=True):
            same(got, want)


@pytest.mark.parametrize("text", ["out = pl.store(pl.take(x, i), [0, 0], out)", "out = pl.put(out, i, 1.0)"])
def test_an_index_that_points_at_nothing_is_refused(text: str) -> None:
    index, x = np.array([[0, 1, 4, 2]], np.int32), np.zeros((4, 3), np.float32)
    for bad in (4, -1):
        index[0, 2] = bad
        native, meant = refused(f"i = pl.load(index, [0, 0], [1, 4])\n{text}", index=index, x=x, out=x)
        assert f"index {bad} in `indices`" in native and f"index {bad} at" in meant


def test_an_index_along_each_axis_names_elements() -> None:
    x, held = sample(RNG, pl.FP32, 4, 5, 6), sample(RNG, pl.FP32, 3, 8)
    rows, columns = RNG.integers(0, 4, (3, 1)).astype(np.int32), RNG.integers(0, 6, (1, 8)).astype(np.int64)
    mask = RNG.integers(0, 2, (3, 8)) > 0
    body = (
        "r = pl.load(rows, [0, 0], [3, 1])\nc = pl.load(columns, [0, 0], [1, 8])\nm = pl.load(mask, [0, 0], [3, 8])\n"
        "out = pl.store(x[r, n, c], [0, 0], out)\n"
        "far = pl.cast(m, pl.INT32) * 9\n"
        "out_some = pl.store(pl.take(x, [r, n, c + pl.cast(far, pl.INT64)], mask=far == 0), [0, 0], out_some)\n"
        "out_put[r, n, c] = pl.load(held, [0, 0], [3, 8])\n"
        "pl.atomic_add(out_add, [r, n, c], 2.0)\npl.atomic_add(out_add, [1, n, 3], 1.0)\n"
        "out_row[r] = 7.0\nout_more[r, :, :] += 1.0"
    )
    given = {"out": held, "out_some": held, "out_put": x, "out_add": x, "out_row": x, "out_more": x}
    found = computed(body, x=x, rows=rows, columns=columns, mask=mask, held=held, **given, n=3)
    put, added, row, more = x.copy(), x.copy(), x.copy(), x.copy()
    for at in np.ndindex(3, 8):
        place = rows[at[0], 0], 3, columns[0, at[1]]
        put[place] = held[at]
        added[place] += np.float32(2)
    added[1, 3, 3] += np.float32(1)
    row[rows[:, 0]] = 7
    more[rows[:, 0]] += np.float32(1)
    taken = x[rows, 3, columns]
    for got, want in zip(found, (taken, np.where(mask, np.float32(0), taken), put, added, row, more), strict=True):
        same(got, want)
    for bad in (6, -1, 1 << 40):
        columns[0, 4] = bad
        native, meant = refused(body, x=x, rows=rows, columns=columns, mask=mask, held=held, **given, n=3)
        assert "in `inner` lies outside" in native and f"index {bad} at" in meant


def test_numbers_alone_name_one_element() -> None:
    body = (
        "for i in pl.range(3):\n    slot = pl.atomic_add(out_next, 0, 2)\n"
        "    pl.write(out, [pl.cast(slot, pl.INDEX)], pl.cast(i, pl.INT32))\n"
        "pl.write(out, [7], pl.take(x, [1, n]))\npl.put(out, [1], 9)"
    )
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    given = {"out": np.full(8, -1, np.int32), "out_next": np.zeros(1, np.int32)}
    found, following = computed(body, x=x, **given, n=2)
    assert found.tolist() == [0, 9, 1, -1, 2, -1, -1, 6] and following.tolist() == [6]
