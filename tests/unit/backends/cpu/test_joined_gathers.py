"""Gathers that join groups, rows added up where they lie, tiles turned around as they are loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.errors import ExecutionError


@pl.jit
def bags(table: pl.Tensor, words: pl.Tensor, out: pl.Out[pl.Tensor]):
    for bag in pl.parallel(words.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[bag, :] = pl.sum(table[pl.load(words[bag], [0], [words.shape[1]])], axis=0)
    return out


@pl.jit
def added_bags(table: pl.Tensor, words: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    for bag in pl.parallel(0, words.shape[0], rows):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = table[pl.load(words[:, 0], [bag], [rows])]
            for word in pl.range(1, words.shape[1]):
                total += table[pl.load(words[:, word], [bag], [rows])]
            pl.store(total, [bag, 0], out)
    return out


@pl.jit
def single_rows(table: pl.Tensor, words: pl.Tensor, out: pl.Out[pl.Tensor], some: pl.Scalar[pl.INDEX]):
    for bag in pl.parallel(words.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.zeros([1, table.shape[1]])
            for word in pl.range(words.shape[1]):
                total += pl.load(table, [pl.read(words, [bag, word]), 0], [1, table.shape[1]])
            pl.store(total, [bag, 0], out)
            row = pl.load(table, [pl.read(words, [bag, 0]), 0], [1, table.shape[1]], valid_shape=[some, 3])
            pl.store(row + row, [bag, 0], out)
    return out


@pl.jit
def changed_rows(table: pl.InOut[pl.Tensor], words: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        which = pl.load(words, [0], [8])
        found = pl.load(table, [0, 0], [8, table.shape[1]]) * table[which]
        pl.store(found, [0, 0], table)
        pl.store(which * 0, [0], words)
        pl.store(found + table[which], [0, 0], out)
    return out


@pl.jit
def at_two(image: pl.Tensor, ys: pl.Tensor, xs: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y, x = pl.load(ys, [0, 0], ys.shape), pl.load(xs, [0, 0], ys.shape)
        pl.store(image[y, x] * 2.0, [0, 0], out)
    return out


@pl.jit
def of_vector(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(x[pl.load(index, [0, 0], index.shape)] + 1.0, [0, 0], out)
    return out


@pl.jit
def around(x: pl.Tensor, out: pl.Out[pl.Tensor], axis: int, is_computed: bool):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [x.shape[0] + 2, x.shape[1] + 3], clamp=True)
        if is_computed:
            t = t + t
        pl.store(pl.flip(t, axis=axis), [0, 0], out)
    return out


@pytest.mark.parametrize("width", [5, 16, 130])
@pytest.mark.parametrize("rows", [8, 5, 1])
def test_rows_are_added_to_a_tile_where_they_lie(width: int, rows: int):
    draw = np.random.default_rng(0)
    table, words = draw.standard_normal((30, width), np.float32), draw.integers(0, 30, (16, 3)).astype(np.int32)
    added_bags(table, words, out := np.zeros((16, width), np.float32), rows)
    np.testing.assert_array_equal(out, table[words[:, 0]] + table[words[:, 1]] + table[words[:, 2]])


def test_rows_that_are_added_to_a_tile_are_in_no_other():
    words = np.zeros((16, 3), np.int32)
    fusion = added_bags.compile(np.zeros((30, 32), np.float32), words, np.zeros((16, 32), np.float32), 8).stages[
        "fusion"
    ]
    (group,) = (part for part in fusion.split("ends: ") if "tile.add" in part)
    assert "tile.take" in group


@pytest.mark.parametrize("some", [0, 1])
def test_single_rows_are_added_as_they_are_found(some: int):
    draw = np.random.default_rng(0)
    table, words = draw.standard_normal((30, 40), np.float32), draw.integers(0, 30, (6, 3)).astype(np.int32)
    single_rows(table, words, out := np.zeros((6, 40), np.float32), some)
    want = table[words[:, 0]] + table[words[:, 1]] + table[words[:, 2]]
    want[:, : 3 * some] = 2 * table[words[:, 0], : 3 * some]
    np.testing.assert_array_equal(out, want)


def test_a_single_row_that_is_not_there_is_an_error():
    with pytest.raises(ExecutionError, match="30"):
        single_rows(np.zeros((30, 40), np.float32), np.full((6, 3), 30, np.int32), np.zeros((6, 40), np.float32), 1)


def test_an_index_of_rows_that_are_added_is_looked_at():
    words = np.array([[0, 1, 2]] * 7 + [[0, 30, 1]], np.int32)
    with pytest.raises(ExecutionError, match="30"):
        added_bags(np.zeros((30, 32), np.float32), words, np.zeros((8, 32), np.float32), 8)


def test_rows_are_read_before_their_table_and_their_indices_change():
    draw = np.random.default_rng(0)
    table, words = draw.standard_normal((8, 32), np.float32), draw.permutation(8).astype(np.int32)
    product = table * table[words]
    want = product + product[words]
    changed_rows(table, words, out := np.zeros((8, 32), np.float32))
    np.testing.assert_array_equal(out, want)
    assert not words.any() and (table == product).all()


@pytest.mark.parametrize("width", [1, 5, 16, 130, 300])
@pytest.mark.parametrize("count", [1, 7])
def test_rows_are_added_up_where_they_lie(width: int, count: int):
    draw = np.random.default_rng(0)
    table, words = draw.random((50, width), np.float32), draw.integers(0, 50, (3, count))
    out = np.empty((3, width), np.float32)
    bags(table, words, out)
    np.testing.assert_allclose(out, table[words].sum(1), rtol=1e-5)


@pytest.mark.parametrize("bad", [-1, 50, 1 << 40])
def test_a_row_that_is_not_there_is_an_error(bad: int):
    words = np.zeros((3, 7), np.int64)
    words[1, 4] = bad
    with pytest.raises(ExecutionError, match=r"index .* in `indices`"):
        bags(np.zeros((50, 20), np.float32), words, np.empty((3, 20), np.float32))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
@pytest.mark.parametrize("width", [8, 16, 37, 100])
def test_elements_are_fetched_where_they_are_wanted(dtype: str, width: int):
    draw = np.random.default_rng(0)
    x = draw.random(90, np.float32)
    index: Any = draw.integers(0, 90, (5, width)).astype(dtype)
    out = np.empty((5, width), np.float32)
    of_vector(x, index, out)
    assert np.array_equal(out, x[index] + 1)
    image, ys, xs = draw.random((90, 100), np.float32), index, (index + 10).astype(dtype)
    at_two(image, ys, xs, out)
    assert np.array_equal(out, image[ys, xs] * 2)


@pytest.mark.parametrize(("y", "x"), [(-1, 0), (90, 0), (0, -1), (0, 100), (1 << 30, 1 << 30)])
@pytest.mark.parametrize("column", [0, 36])
def test_an_element_that_is_not_there_is_an_error(y: int, x: int, column: int):
    ys, xs = np.zeros((5, 37), np.int32), np.zeros((5, 37), np.int32)
    ys[3, column], xs[3, column] = y, x
    bad = "outer" if not 0 <= y < 90 else "inner"
    with pytest.raises(ExecutionError, match=f"index {y if bad == 'outer' else x} in `{bad}` lies outside 0 to"):
        at_two(np.zeros((90, 100), np.float32), ys, xs, np.empty((5, 37), np.float32))
    if y:
        with pytest.raises(ExecutionError, match=f"index {y} in `indices` lies outside 0 to 90"):
            of_vector(np.zeros(90, np.float32), ys, np.empty((5, 37), np.float32))


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (40, 2), (17, 40), (33, 130)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
def test_what_is_turned_around_begins_with_its_last_valid_element(shape: tuple[int, int], dtype: str):
    x: Any = np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)
    for axis in (0, 1):
        for is_computed in (False, True):
            out = np.empty_like(x)
            around(x, out, axis, is_computed)
            assert np.array_equal(out, np.flip(x + x if is_computed else x, axis))


@pl.jit
def at_three(image: pl.Tensor, zs: pl.Tensor, ys: pl.Tensor, xs: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        z, y, x = (pl.load(each, [0, 0], each.shape) for each in (zs, ys, xs))
        pl.store(image[z, y + 1, x] + image[z, y, x], [0, 0], out)
    return out


@pl.jit
def by_row_and_column(image: pl.Tensor, out: pl.Out[pl.Tensor], step: int):
    with pl.at(level=pl.Level.CORE_GROUP):
        rows, columns = pl.iota([out.shape[0], 1], axis=0) // step, pl.arange(out.shape[1]) // step
        pl.store(image[rows, columns], [0, 0], out)
    return out


@pl.jit
def compressed(starts: pl.Tensor, columns: pl.Tensor, values: pl.Tensor, x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(out.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            begin, end = pl.read(starts, [row]), pl.read(starts, [row + 1])
            total = pl.zeros([32])
            for i in pl.range(begin, end, 32):
                there = i + pl.arange(32) < end
                total += pl.load(values, [i], [32], mask=there) * x[pl.load(columns, [i], [32], mask=there)]
            pl.write(out, [row], pl.sum(total))  # pyright: ignore[reportArgumentType]
    return out


def views(x: Any) -> list[Any]:
    """Return an array as it is, and with its elements apart, in rows and in columns."""
    wide: Any = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    long: Any = np.zeros((x.shape[0], x.shape[1] + 3, *x.shape[2:]), x.dtype)
    long[:, : x.shape[1]] = x
    return [x, wide[..., ::2], long[:, : x.shape[1]], np.asfortranarray(x)]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "int32", "float64", "int64"])
@pytest.mark.parametrize("width", [8, 16, 37])
def test_elements_of_any_size_are_fetched_wherever_they_lie(dtype: str, width: int):
    draw = np.random.default_rng(1)
    image: Any = draw.integers(0, 50, (7, 9, 20)).astype(dtype)
    zs, ys, xs = (draw.integers(0, most, (5, width)).astype("int32") for most in (7, 8, 20))
    for each in views(image):
        out: Any = np.zeros((5, width), dtype)
        at_three(each, zs, ys, xs, out)
        assert np.array_equal(out, image[zs, ys + 1, xs] + image[zs, ys, xs])


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_index_for_each_row_and_one_for_each_column_name_elements(dtype: str, step: int):
    image: Any = np.random.default_rng(2).integers(0, 50, (12, 40)).astype(dtype)
    for each in views(image):
        out: Any = np.zeros((12, 37), dtype)
        by_row_and_column(each, out, step)
        assert np.array_equal(out, image[np.arange(12)[:, None] // step, np.arange(37) // step])


@pytest.mark.parametrize("place", [0, 15, 40, 69])
def test_the_last_axis_of_three_is_looked_at(place: int):
    zs, ys, xs = (np.zeros((2, 70), np.int32) for _ in range(3))
    xs[1, place] = 20
    with pytest.raises(ExecutionError, match=r"index 20 in `inner` lies outside 0 to 20"):
        at_three(np.zeros((7, 9, 20), np.float32), zs, ys, xs, np.zeros((2, 70), np.float32))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_lists_of_any_length_are_fetched_under_a_mask(dtype: str):
    draw: Any = np.random.default_rng(3)
    lengths = np.array([0, 1, 31, 32, 33, 64, 100, 5])
    starts: Any = np.concatenate([[0], lengths.cumsum()]).astype("int32")
    columns: Any = draw.integers(0, 90, starts[-1]).astype(dtype)
    values: Any = draw.random(starts[-1], np.float32)
    x, out = draw.random(90, np.float32), np.empty(8, np.float32)
    compressed(starts, columns, values, x, out)
    parts = [slice(*starts[row : row + 2]) for row in range(8)]
    np.testing.assert_allclose(out, [(values[part] * x[columns[part]]).sum() for part in parts], rtol=1e-5)
    columns[starts[5] + 3] = 90
    with pytest.raises(ExecutionError, match=r"index 90 in `indices` lies outside 0 to 90"):
        compressed(starts, columns, values, x, out)
