"""Scatters: elements, columns and rows put where indices and patterns say."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch as half_typed
from ops.indexed import computed, refused, sample
from ops.kernels import Array, kernel, tensor
from ops.test_gather import PATTERNS

import tilewright.language as pl
from tilewright.core.region import whole
from tilewright.dtypes import DataType
from tilewright.errors import (
    AttributeValueError,
    DTypeMismatchError,
    MixedKindsError,
    ParserError,
    RaceError,
    ShapeMismatchError,
)
from tilewright.frontend.programs import as_program
from tilewright.interpret.checked import run_checked

np: Any = numpy  # their stubs leave most of what is used here half typed
torch: Any = half_typed
RNG = np.random.default_rng(7)
PUT = (pl.INT8, pl.INT16, pl.INT32, pl.FP16, pl.BF16, pl.FP32)


def same(got: Array, want: Any) -> None:
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


def index_type(dtype: DataType) -> Any:
    return np.int32 if dtype.bits == 32 else np.int16


@pytest.mark.parametrize("dtype", PUT, ids=str)
def test_elements_go_to_the_columns_of_their_indices(dtype: DataType) -> None:
    x, src = sample(RNG, dtype, 6, 21), sample(RNG, dtype, 4, 19)
    index = RNG.integers(0, 21, (4, 19)).astype(index_type(dtype))
    want = x.copy()
    for b in range(4):
        for k in range(19):
            want[b, index[b, k]] = src[b, k]
    body = "r = pl.scatter(x, dim=-1, index=index, src=src)\nout = pl.store(pl.load(r, [0, 0], [6, 21]), [0, 0], out)"
    same(computed(body, x=x, index=index, src=src, out=np.zeros((6, 21), x.dtype)), want)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", [pl.INT8, pl.BF16, pl.FP32], ids=str)
def test_a_pattern_puts_columns_and_keeps_the_others(pattern: str, dtype: DataType) -> None:
    first, step = PATTERNS[pattern]
    for columns in (3, 70):
        x, held = sample(RNG, dtype, 4, columns), sample(RNG, dtype, 4, columns * step)
        want = held.copy()
        want[:, first::step] = x
        size = [4, columns * step]
        body = (
            f"r = pl.scatter(x, mask_pattern=pl.tile.MaskPattern.{pattern}, dst=d)\n"
            f"out = pl.store(pl.load(r, [0, 0], {size}), [0, 0], out)"
        )
        same(computed(body, x=x, d=held, out=np.zeros(size, x.dtype)), want)
        body = (
            f"a = pl.load(x, [0, 0], [4, {columns}], valid_shape=[rows, columns])\nb = pl.load(d, [0, 0], {size})\n"
            f"b = pl.tile.scatter_mask(b, a, pl.tile.MaskPattern.{pattern})\nout = pl.store(b, [0, 0], out)"
        )
        for rows, live in ((4, columns), (2, 2), (0, 1)):
            partly = held.copy()
            partly[:rows, first : first + live * step : step] = x[:rows, :live]
            same(computed(body, x=x, d=held, out=np.zeros(size, x.dtype), rows=rows, columns=live), partly)


@pytest.mark.parametrize("row", [4, 5, 3])
def test_columns_put_into_what_they_are_stored_to_are_those_of_a_tile(row: int) -> None:
    x, held = sample(RNG, pl.FP32, 4, 20), sample(RNG, pl.FP32, 9, 40)
    for columns, source in (("x, [0, 0]", x), (f"out, [{row}, 7]", held[row : row + 4, 7:27])):
        body = (
            f"d = pl.load(out, [{row}, 0], [4, 40])\ns = pl.load({columns}, [4, 20])\n"
            "d = pl.tile.scatter_mask(d, s, pl.tile.MaskPattern.P0101)\nout = pl.store(d, [4, 0], out)"
        )
        want = held.copy()
        want[4:8] = held[row : row + 4]
        want[4:8, ::2] = source
        same(computed(body, x=x, out=held), want)


@pytest.mark.parametrize("dtype", PUT, ids=str)
def test_a_tile_takes_elements_by_number(dtype: DataType) -> None:
    x, src = sample(RNG, dtype, 5, 9), sample(RNG, dtype, 3, 30)
    index = RNG.integers(0, 45, (3, 30)).astype(index_type(dtype))
    body = (
        "a = pl.load(x, [0, 0], [5, 9])\ns = pl.load(src, [0, 0], [3, 30], valid_shape=[rows, columns])\n"
        "i = pl.load(index, [0, 0], [3, 30])\n"
        "pl.tile.scatter(a, s, i)\n"
        "out = pl.store(a, [0, 0], out)"
    )
    for rows, columns in ((3, 30), (2, 11), (0, 4)):
        want = x.copy()
        for r in range(rows):
            for c in range(columns):
                want.reshape(-1)[index[r, c]] = src[r, c]
        given = {"x": x, "src": src, "index": index, "out": np.zeros((5, 9), x.dtype)}
        same(computed(body, **given, rows=rows, columns=columns), want)


def test_a_created_tile_is_put_together_by_scattering() -> None:
    src, index = sample(RNG, pl.FP32, 4, 8), RNG.permutation(32).astype(np.int32).reshape(4, 8)
    body = (
        "a = pl.create_tile([2, 16], dtype=pl.FP32)\n"
        "for r in pl.range(4):\n"
        "    a = pl.tile.scatter(a, pl.load(src, [r, 0], [1, 8]), pl.load(index, [r, 0], [1, 8]))\n"
        "out = pl.store(a, [0, 0], out)"
    )
    want = np.zeros(32, np.float32)
    want[index.reshape(-1)] = src.reshape(-1)
    same(computed(body, src=src, index=index, out=np.zeros((2, 16), np.float32)), want)


def test_elements_without_an_index_and_indices_outside_are_refused() -> None:
    x, src = np.zeros((2, 8), np.float32), np.zeros((1, 8), np.float32)
    body = (
        "a = pl.load(x, [0, 0], [2, 8])\ns = pl.load(src, [0, 0], [1, 8])\n"
        "i = pl.load(index, [0, 0], [1, 8], valid_shape=[1, n])\n"
        "out = pl.store(pl.tile.scatter(a, s, i), [0, 0], out)"
    )
    for bad, n in ((16, 8), (-1, 8), (0, 7)):
        index = np.array([[0, 1, 2, 3, 4, 5, bad, 7]], np.int32)
        assert len(refused(body, x=x, src=src, index=index, out=np.zeros((2, 8), np.float32), n=n)) == 2


ORDERS = (
    "out, -2, index, src", "out, index, src, dim=-2", "out, -2, index=index, src=src", "out, index, src",
    "out, index, src, -2",
)  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
def test_rows_are_replaced_in_every_order_of_arguments(order: str) -> None:
    held, src = sample(RNG, pl.FP32, 20, 12), sample(RNG, pl.FP32, 6, 12)
    index = np.array([[5, 5, 7], [2, 19, 5]], np.int32)
    want = held.copy()
    for k, row in enumerate(index.reshape(-1).tolist()):
        want[row] = src[k]
    same(computed(f"out = pl.scatter_update({order})", index=index, src=src, out=held), want)
    same(computed(f"pl.tensor.scatter_update({order})", index=index, src=src, out=held), want)
    tiles = (
        "a = pl.load(out, [0, 0], [20, 12])\ni = pl.load(index, [0, 0], [2, 3])\ns = pl.load(src, [0, 0], [6, 12])\n"
        f"a = pl.tile.scatter_update({order.replace('out', 'a')})\nout = pl.store(a, [0, 0], out)"
    )
    tiles = tiles.replace(", index, src", ", i, s").replace("=index, src=src", "=i, src=s")
    same(computed(tiles, index=index, src=src, out=held), want)


@pytest.mark.parametrize("dtype", [pl.INT8, pl.INT16, pl.INT64, pl.UINT16], ids=str)
def test_rows_of_a_cache_in_blocks_are_counted_through(dtype: DataType) -> None:
    held, src = sample(RNG, pl.BF16, 4, 8, 1, 16), sample(RNG, pl.BF16, 2, 3, 1, 16)
    index = np.array([[0, 31, 9], [9, 16, 8]], dtype.numpy)
    want = held.copy()
    for k, row in enumerate(index.reshape(-1).tolist()):
        want[row // 8, row % 8] = src.reshape(6, 1, 16)[k]
    same(computed("out = pl.scatter_update(out, -2, index, src)", index=index, src=src, out=held), want)
    tiles = (
        "a = pl.load(out, [0, 0, 0, 0], [4, 8, 1, 16])\ns = pl.load(src, [0, 0, 0, 0], [2, 3, 1, 16])\n"
        "a = pl.scatter_update(a, -2, pl.load(index, [0, 0], [2, 3]), s)\nout = pl.store(a, [0, 0, 0, 0], out)"
    )
    same(computed(tiles, index=index, src=src, out=held), want)


def test_rows_are_replaced_as_far_as_indices_are_valid() -> None:
    held, src = sample(RNG, pl.FP32, 9, 10), sample(RNG, pl.FP32, 8, 10)
    index = np.array([[3, 1, 4, 8], [5, 0, 2, 6]], np.int32)
    body = (
        "a = pl.load(out, [0, 0], [9, 10])\ni = pl.load(index, [0, 0], [2, 4], valid_shape=[b, s])\n"
        "r = pl.load(src, [0, 0], [8, 10], valid_shape=[rows, 7])\n"
        "out = pl.store(pl.scatter_update(a, i, r), [0, 0], out)"
    )
    for b, s, rows in ((2, 4, 8), (1, 3, 3), (2, 2, 6), (0, 4, 0)):
        want = held.copy()
        for i in range(b):
            for j in range(s):
                want[index[i, j], :7] = src[i * 4 + j, :7]
        same(computed(body, index=index, src=src, out=held, b=b, s=s, rows=rows), want)
    for b, s, rows in ((2, 4, 7), (1, 3, 2), (2, 1, 4)):
        errors = refused(body, index=index, src=src, out=held, b=b, s=s, rows=rows)
        assert all("no valid row for an index" in error for error in errors)


def test_a_row_outside_is_refused() -> None:
    held, src = sample(RNG, pl.FP32, 5, 8), sample(RNG, pl.FP32, 2, 8)
    for bad in (5, -1):
        index = np.array([[0, bad]], np.int32)
        native, _ = refused("out = pl.scatter_update(out, -2, index, src)", index=index, src=src, out=held)
        assert f"index {bad} in `index`" in native


@pytest.mark.parametrize("dtype", [pl.FP16, pl.FP32, pl.INT16, pl.INT32], ids=str)
def test_elements_go_to_memory_by_number(dtype: DataType) -> None:
    src = sample(RNG, dtype, 3, 17)
    index = RNG.integers(0, 60, (3, 17)).astype(np.int32)
    body = (
        "s = pl.load(src, [0, 0], [3, 17], valid_shape=[rows, columns])\n"
        "out = pl.mscatter(s, pl.load(index, [0, 0], [3, 17]), out)"
    )
    for shape in ((60,), (5, 12), (3, 4, 5)):
        for rows, columns in ((3, 17), (2, 6), (3, 0)):
            held = sample(RNG, dtype, *shape)
            want = held.reshape(-1).copy()
            for r in range(rows):
                for c in range(columns):
                    want[index[r, c]] = src[r, c]
            same(computed(body, src=src, index=index, out=held, rows=rows, columns=columns), want)


def test_an_element_outside_memory_is_refused() -> None:
    src, held = np.ones((1, 4), np.float32), np.zeros((3, 4), np.float32)
    body = "out = pl.mscatter(pl.load(src, [0, 0], [1, 4]), pl.load(index, [0, 0], [1, 4]), out)"
    for bad in (12, -1):
        native, meant = refused(body, src=src, index=np.array([[0, 1, 2, bad]], np.int32), out=held)
        assert f"index {bad} in `idx`" in native and f"index {bad} at [0, 3] of `idx`" in meant


def test_turns_that_scatter_to_one_place_race() -> None:
    body = (
        "for r in pl.parallel(2):\n    pl.mscatter(pl.load(src, [r, 0], [1, 4]), pl.load(index, [r, 0], [1, 4]), out)"
    )
    given = {"src": tensor(pl.FP32, 2, 4), "index": tensor(pl.INT32, 2, 4), "out": f"pl.Out[{tensor(pl.FP32, 3, 4)}]"}
    program = as_program(kernel(body, **given))
    src, out = np.ones((2, 4), np.float32), np.zeros((3, 4), np.float32)
    apart = np.arange(8, dtype=np.int32).reshape(2, 4)
    run_checked(program, "kernel", [whole(src), whole(apart), whole(out)])
    meeting = apart.copy()
    meeting[1, 2] = 3
    with pytest.raises(RaceError, match=r"out\[0, 3\]"):
        run_checked(program, "kernel", [whole(src), whole(meeting), whole(out)])


@pytest.mark.parametrize(
    ("line", "meets"),
    [
        ("pl.scatter_update(out, -2, pl.slice(index, [1, 2], [r, 0]), src)", True),
        ("pl.gather_row(out, src, [pl.cast(pl.read(index, [r, 0]), pl.INDEX), 0], [0, 0], [1, 4])", True),
        ("w = pl.store(pl.mgather(out, pl.load(index, [r, 0], [1, 2])), [4 + 2 * r, 0], out)", False),
        ("w = pl.store(pl.take(out, pl.load(index, [r, 0], [1, 2])), [4 + 2 * r, 0], out)", False),
        ("pl.put(out, pl.load(index, [r, 0], [1, 2]), 1.0)", True),
    ],
)
def test_turns_that_touch_rows_by_index_race_where_they_meet(line: str, meets: bool) -> None:
    given = {"src": tensor(pl.FP32, 2, 4), "index": tensor(pl.INT32, 2, 2), "out": f"pl.InOut[{tensor(pl.FP32, 8, 4)}]"}
    program = as_program(kernel(f"for r in pl.parallel(2):\n    {line}", **given))

    def run(*rows: int) -> None:
        given = np.ones((2, 4), np.float32), np.array(rows, np.int32).reshape(2, 2), np.ones((8, 4), np.float32)
        run_checked(program, "kernel", [whole(array) for array in given])

    run(0, 1, 2, 3)
    if meets:
        with pytest.raises(RaceError, match=r"out\[0, 0\]"):
            run(0, 1, 0, 3)
    else:
        run(0, 1, 0, 3)
        with pytest.raises(RaceError, match=r"out\[4, 0\]"):
            run(0, 1, 4, 3)


def test_rows_of_strided_caches_are_replaced_in_scopes() -> None:
    @pl.jit
    def kernel(cache: pl.InOut[pl.Tensor], index: pl.Tensor, src: pl.Tensor):
        with pl.at(level=pl.Level.CORE_GROUP):
            cache = pl.scatter_update(cache, -2, index, src)
        return cache

    index = torch.tensor([[1, 7, 3]], dtype=torch.int32)
    base = torch.from_numpy(RNG.normal(size=(16, 24)).astype(np.float32))
    rows = torch.from_numpy(RNG.normal(size=(12, 8)).astype(np.float32))
    for cut in (np.s_[::2, :12], np.s_[:8, ::2]):
        cache = base.clone()[cut]
        want = cache.clone().index_copy_(0, index[0].long(), rows.t()[::3, :][:3])
        kernel(cache, index, rows.t()[::3, :][:3])
        assert torch.equal(cache, want)


@pytest.mark.parametrize(
    ("body", "error", "match"),
    [
        ("r = pl.scatter(x, -1, i, x, mask_pattern=1, dst=x)", AttributeValueError, "mutually exclusive"),
        ("r = pl.scatter(x)", AttributeValueError, "scatter needs one of its forms"),
        ("r = pl.scatter(x, -1, i)", AttributeValueError, "requires dim, index and src"),
        ("r = pl.scatter(x, mask_pattern=1)", AttributeValueError, "requires both mask_pattern and dst"),
        ("r = pl.scatter(x, 0, i, x)", AttributeValueError, "along the last axis, not 0"),
        ("r = pl.scatter(x, -1, x, x)", DTypeMismatchError, "`index` must hold int32"),
        ("r = pl.scatter(h, -1, i, h)", DTypeMismatchError, "`index` must hold int16"),
        ("r = pl.scatter(x, -1, i, h)", DTypeMismatchError, "fp16 elements cannot go into fp32"),
        ("r = pl.scatter(x, -1, pl.slice(i, [8, 8], [0, 0]), x)", ShapeMismatchError, "need one shape"),
        ("r = pl.scatter(pl.slice(x, [4, 32], [0, 0]), -1, i, x)", ShapeMismatchError, "larger than an input"),
        ("r = pl.scatter(x, mask_pattern=1, dst=x)", ShapeMismatchError, "2 times the columns"),
        ("r = pl.tile.scatter(a, a, pl.slice(j, [8, 8], [0, 0]))", ShapeMismatchError, "need one shape"),
        ("r = pl.tile.scatter_mask(a, pl.slice(a, [4, 16], [0, 0]), 1)", ShapeMismatchError, "2 times the columns"),
        ("r = pl.scatter_update(x, -1, i, x)", AttributeValueError, "along dim=-2, not -1"),
        ("r = pl.scatter_update(x, -2)", AttributeValueError, "needs one of its forms"),
        ("r = pl.scatter_update(x, -2, x, x)", DTypeMismatchError, "`index` must hold"),
        ("r = pl.scatter_update(x, -2, i, x)", ShapeMismatchError, "cannot put"),
        ("r = pl.scatter_update(a, -2, i, x)", MixedKindsError, "cannot mix Tensor and Tile"),
        ("r = pl.mscatter(a, pl.cast(j, pl.INT16), x)", DTypeMismatchError, "`idx` must hold int32"),
        ("r = pl.mscatter(a, j, h)", DTypeMismatchError, "fp32 elements cannot go into fp16"),
        ("r = pl.mscatter(a, pl.slice(j, [8, 8], [0, 0]), x)", ShapeMismatchError, "need one shape"),
        ("r = pl.mscatter(pl.cast(a, pl.INT8), j, x)", DTypeMismatchError, "int8 elements are not supported"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(body: str, error: type[ParserError], match: str) -> None:
    given = {"x": tensor(pl.FP32, 8, 32), "i": tensor(pl.INT32, 8, 32), "h": tensor(pl.FP16, 8, 32)}
    loads = "a = pl.load(x, [0, 0], [8, 32])\nj = pl.load(i, [0, 0], [8, 32])\n"
    with pytest.raises(error, match=match):
        kernel(loads + body, **given)
