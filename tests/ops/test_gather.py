"""Gathers: by index, by pattern, by comparison, by byte offset."""

from __future__ import annotations

import operator
from typing import Any

import numpy
import pytest
import torch as half_typed
from ops.indexed import computed, refused, sample
from ops.kernels import Array, kernel, tensor, type_of

import tilewright.language as pl
from tilewright.core.types import TensorType, TileType
from tilewright.dtypes import DataType
from tilewright.errors import (
    AttributeValueError,
    DTypeMismatchError,
    ParserError,
    ShapeMismatchError,
)

np: Any = numpy  # their stubs leave most of what is used here half typed
torch: Any = half_typed
RNG = np.random.default_rng(3)
PICKED = (pl.FP16, pl.FP32, pl.INT16, pl.INT32)


def same(got: Array, want: Any) -> None:
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


def store(shape: tuple[int, ...], name: str = "r", out: str = "out") -> str:
    zeros = [0] * len(shape)
    return f"\n{out} = pl.store(pl.load({name}, {zeros}, {list(shape)}), {zeros}, {out})"


def index_types(dtype: DataType) -> list[DataType]:
    return [pl.INT32, pl.INT16] if dtype.bits == 16 else [pl.INT32]


@pytest.mark.parametrize("dtype", PICKED, ids=str)
@pytest.mark.parametrize(
    ("shape", "asked", "dim"),
    [((5, 37), (5, 37), 1), ((5, 37), (3, 70), -1), ((9, 20), (40, 20), 0), ((2, 8, 17), (2, 5, 17), 1),
     ((3, 4, 6), (2, 4, 6), 0), ((2, 3, 21), (2, 2, 40), -1), ((1, 1), (1, 1), 0)],
)  # fmt: skip
def test_an_index_takes_what_torch_gathers(
    dtype: DataType, shape: tuple[int, ...], asked: tuple[int, ...], dim: int
) -> None:
    x = sample(RNG, dtype, *shape)
    for index_type in index_types(dtype):
        index = RNG.integers(0, shape[dim], asked).astype(index_type.numpy)
        body = f"r = pl.gather(x, dim={dim}, index=index){store(asked)}"
        got = computed(body, x=x, index=index, out=np.zeros(asked, x.dtype))
        bits = torch.from_numpy(x.view(f"i{x.itemsize}").astype(np.int64))
        want = torch.gather(bits, dim, torch.from_numpy(index.astype(np.int64))).numpy()
        same(got, want.astype(f"i{x.itemsize}"))


def test_an_index_outside_names_itself() -> None:
    x, out = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    for bad in (8, -1, 2**31 - 1, -(2**31)):
        index = np.zeros((4, 8), np.int32)
        index[2, 5] = bad
        native, meant = refused(f"r = pl.gather(x, dim=1, index=index){store((4, 8))}", x=x, index=index, out=out)
        assert f"index {bad} in `index` lies outside" in native
        assert f"index {bad} at [2, 5] of `index` lies outside 0 to 8" in meant


def test_gathering_works_on_tensors_of_unknown_extents_and_strides() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.assemble(out, pl.gather(x, dim=0, index=index), [0, 0])
        return out

    x = torch.from_numpy(RNG.normal(size=(30, 40)).astype(np.float32))[::2, 1::3]
    index = torch.from_numpy(RNG.integers(0, 15, (7, 13)).astype(np.int32))
    out = torch.zeros(7, 13)
    kernel(x, index, out)
    assert torch.equal(out, torch.gather(x, 0, index.long()))
    turned = x.t()
    other = torch.zeros(7, 13)
    kernel(turned, torch.from_numpy(RNG.integers(0, 13, (7, 13)).astype(np.int32)).clamp(max=12), other)


PATTERNS = {
    "P0101": (0, 2), "P1010": (1, 2), "P0001": (0, 4), "P0010": (1, 4), "P0100": (2, 4), "P1000": (3, 4),
    "P1111": (0, 1),
}  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", [pl.INT8, pl.BF16, pl.FP32, pl.INT64], ids=str)
def test_a_pattern_takes_every_so_many_columns(pattern: str, dtype: DataType) -> None:
    first, step = PATTERNS[pattern]
    for columns in (4, 36, 272):
        x = sample(RNG, dtype, 3, columns)
        want = x[:, first::step]
        body = f"r = pl.gather(x, mask_pattern=pl.tile.MaskPattern.{pattern}){store(want.shape)}"
        same(computed(body, x=x, out=np.zeros(want.shape, x.dtype)), want)
        body = (
            f"r = pl.tile.gather_mask(pl.load(x, [0, 0], [3, {columns}]), pl.tile.MaskPattern.{pattern})\n"
            "out = pl.store(r, [0, 0], out)"
        )
        same(computed(body, x=x, out=np.zeros(want.shape, x.dtype)), want)


def test_a_pattern_reads_the_same_bits_as_another_type() -> None:
    x = sample(RNG, pl.FP32, 4, 64)
    body = f"r = pl.gather(x, mask_pattern=2, output_dtype=pl.UINT32){store((4, 32))}"
    same(computed(body, x=x, out=np.zeros((4, 32), np.uint32)), x[:, 1::2])
    body = (
        "r = pl.tile.gather_mask(pl.load(x, [0, 0], [4, 64]), 2, output_dtype=pl.INT32)\nout = pl.store(r, [0, 0], out)"
    )
    same(computed(body, x=x, out=np.zeros((4, 32), np.int32)), x[:, 1::2])


@pytest.mark.parametrize("pattern", [1, 2, 5, 6, 7])
def test_a_pattern_takes_what_is_valid_of_a_tile(pattern: int) -> None:
    x, held = sample(RNG, pl.INT32, 6, 40), np.full((6, 40), -7, np.int32)
    body = (
        "a = pl.load(x, [0, 0], [6, 40], valid_shape=[rows, columns])\n"
        f"r = pl.tile.gather_mask(a, {pattern})\nout = pl.store(r, [0, 0], out)"
    )
    step, first = pl.tile.MaskPattern(pattern).step, pl.tile.MaskPattern(pattern).first
    for rows, columns in ((6, 40), (3, 17), (1, 1), (0, 5), (4, 0), (2, 6)):
        want = held.copy()
        live = x[:rows, :columns][:, first::step]
        want[: live.shape[0], : live.shape[1]] = live
        same(computed(body, x=x, out=held, rows=rows, columns=columns), want)


def test_a_pattern_takes_columns_of_a_turned_tile() -> None:
    x = sample(RNG, pl.FP32, 16, 6)
    body = (
        "a = pl.tile.transpose_view(pl.load(x, [0, 0], [16, 6]))\n"
        "out = pl.store(pl.tile.gather_mask(a, 3), [0, 0], out)"
    )
    same(computed(body, x=x, out=np.zeros((6, 4), np.float32)), x.T[:, ::4])


MODES = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def matches(x: Array, mode: str, number: float, room: int, offset: int = 0) -> tuple[Array, Array]:
    """Return the places of matching elements and how many match, counted one by one."""
    places, counts = np.zeros((len(x), room), np.int32), np.zeros((1, len(x)), np.int32)
    for r, row in enumerate(x):
        found = [j + offset for j, value in enumerate(row.tolist()) if MODES[mode](value, number)]
        places[r, : min(room, len(found))] = found[:room]
        counts[0, r] = len(found)
    return places, counts


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", PICKED, ids=str)
def test_a_comparison_finds_the_columns_that_match(mode: str, dtype: DataType) -> None:
    x = RNG.integers(-3, 4, (5, 67)).astype(dtype.numpy)
    if dtype.is_float():
        x[1, 3:9] = np.nan
        x[2, 5] = -0.0
    places, counts = matches(x, mode, 0, 30, 100)
    given = {"x": x, "out": np.full((5, 30), -1, np.int32), "out_n": np.full((1, 5), -1, np.int32)}
    zero = "0.0" if dtype.is_float() else "0"
    body = f'd, n = pl.gather(x, kvalue={zero}, cmp_mode="{mode}", out_cols=30, offset=100)'
    on_tensors = body + store((5, 30), "d") + store((1, 5), "n", "out_n")
    number = list(MODES).index(mode)
    on_tiles = (
        "a = pl.load(x, [0, 0], [5, 67])\n"
        f"d, n = pl.tile.gather_compare(a, {zero}, cmp_mode={number}, offset=100, out_cols=30)\n"
        "out = pl.store(d, [0, 0], out)\nout_n = pl.store(n, [0, 0], out_n)"
    )
    for text in (on_tensors, on_tiles):
        for got, want in zip(computed(text, **given), (places, counts), strict=True):
            same(got, want)


def test_a_comparison_looks_at_what_is_valid_and_may_be_computed() -> None:
    x = RNG.integers(0, 5, (6, 50)).astype(np.int32)
    body = (
        "a = pl.load(x, [0, 0], [6, 50], valid_shape=[rows, columns])\n"
        "k = pl.read(x, [0, 0])\n"
        "d, n = pl.tile.gather_compare(pl.add(a, 1), k, out_cols=8, count_dtype=pl.UINT32)\n"
        "out = pl.store(d, [0, 0], out)\nout_n = pl.store(n, [0, 0], out_n)"
    )
    for rows, columns in ((6, 50), (4, 33), (2, 0), (0, 9)):
        held = {"out": np.full((6, 8), -1, np.int32), "out_n": np.full((1, 6), 77, np.uint32)}
        got, counted = computed(body, x=x, **held, rows=rows, columns=columns)
        places, counts = matches(x[:rows, :columns] + 1, "eq", int(x[0, 0]), 8)
        same(got[:rows], places)
        same(counted[0, :rows], counts[0].astype(np.uint32))
        assert (got[rows:] == -1).all() and (counted[0, rows:] == 77).all()


@pytest.mark.parametrize("dtype", PICKED, ids=str)
def test_a_tile_gathers_by_the_number_of_its_elements(dtype: DataType) -> None:
    x = sample(RNG, dtype, 7, 19)
    for index_type in index_types(dtype):
        index = RNG.integers(0, x.size, (5, 35)).astype(index_type.numpy)
        body = (
            "a = pl.load(x, [0, 0], [7, 19])\ni = pl.load(index, [0, 0], [5, 35], valid_shape=[rows, columns])\n"
            "tmp = pl.create_tile([5, 35], dtype=pl.INT32)\n"
            "out = pl.store(pl.tile.gather(a, i, tmp), [0, 0], out)"
        )
        for rows, columns in ((5, 35), (2, 17), (0, 3)):
            held = np.zeros((5, 35), x.dtype)
            want = held.copy()
            want[:rows, :columns] = x.reshape(-1)[index[:rows, :columns]]
            same(computed(body, x=x, index=index, out=held, rows=rows, columns=columns), want)


def test_a_tile_gathers_from_what_is_valid_of_another() -> None:
    x, index = sample(RNG, pl.FP32, 4, 8), np.array([[0, 2, 8, 10, 9, 1, 8, 0]], np.int32)
    body = (
        "a = pl.load(x, [0, 0], [4, 8], valid_shape=[rows, columns])\ni = pl.load(index, [0, 0], [1, 8])\n"
        "out = pl.store(pl.tile.gather(a, i), [0, 0], out)"
    )
    given = {"x": x, "index": index, "out": np.zeros((1, 8), np.float32)}
    same(computed(body, **given, rows=2, columns=3), x.reshape(-1)[index])
    for rows, columns in ((2, 2), (1, 8)):
        native, meant = refused(body, **given, rows=rows, columns=columns)
        assert all("points at what is not valid" in message for message in (native, meant))


def test_a_tile_gathers_from_views_by_views() -> None:
    x, index = sample(RNG, pl.INT32, 6, 10), RNG.integers(0, 60, (8, 3)).astype(np.int32)
    body = (
        "a = pl.tile.transpose_view(pl.load(x, [0, 0], [6, 10]))\n"
        "i = pl.tile.transpose_view(pl.load(index, [0, 0], [8, 3]))\n"
        "out = pl.store(pl.tile.gather(a, i), [0, 0], out)"
    )
    want = np.ascontiguousarray(x.T).reshape(-1)[index.T]
    same(computed(body, x=x, index=index, out=np.zeros((3, 8), np.int32)), want)


@pytest.mark.parametrize("dtype", [pl.INT8, pl.FP16, pl.FP32, pl.UINT32, pl.BF16], ids=str)
@pytest.mark.parametrize("as_type", ["", "INT8", "FP32"])
def test_blocks_are_32_bytes_from_any_byte_on(dtype: DataType, as_type: str) -> None:
    x = sample(RNG, dtype, 4, 48)
    memory = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
    offsets = RNG.integers(0, memory.size - 31, (3, 8)).astype(np.uint32)
    offsets[0, :2] = 0, memory.size - 32
    result = np.dtype(getattr(pl, as_type).numpy) if as_type else x.dtype
    blocks = np.stack([memory[o : o + 32] for o in offsets.reshape(-1).tolist()]).reshape(3, -1)
    want = np.ascontiguousarray(blocks).view(result)
    body = (
        "o = pl.load(index, [0, 0], [3, 8], valid_shape=[rows, columns])\n"
        f"r = pl.gatherb(pl.load(x, [0, 0], [4, 48]), o{', output_dtype=pl.' + as_type if as_type else ''})\n"
        "out = pl.store(r, [0, 0], out)"
    )
    for rows, columns in ((3, 8), (2, 5), (0, 8)):
        held, live = np.zeros(want.shape, result), columns * 32 // result.itemsize
        expected = held.copy()
        expected[:rows, :live] = want[:rows, :live]
        same(computed(body, x=x, index=offsets, out=held, rows=rows, columns=columns), expected)


def test_a_block_outside_what_is_valid_is_refused() -> None:
    x, out = np.zeros((2, 32), np.float32), np.zeros((1, 64), np.float32)
    body = (
        "a = pl.load(x, [0, 0], [2, 32], valid_shape=[rows, columns])\n"
        "out = pl.store(pl.gatherb(a, pl.load(index, [0, 0], [1, 8])), [0, 0], out)"
    )
    for place, rows, columns, fits in (
        (224, 2, 32, True), (225, 2, 32, False), (100, 1, 32, False), (97, 1, 32, False), (96, 1, 32, True),
        (32, 2, 16, True), (33, 2, 16, False), (128, 2, 16, True), (112, 2, 16, False), (2**32 - 1, 2, 32, False),
    ):  # fmt: skip
        index = np.full((1, 8), place, np.uint32)
        given = {"x": x, "index": index, "out": out, "rows": rows, "columns": columns}
        if fits:
            computed(body, **given)
        else:
            assert all("32 bytes" in error for error in refused(body, **given))


def wrong(body: str, error: type[ParserError], match: str) -> None:
    given = {"x": tensor(pl.FP32, 8, 32), "i": tensor(pl.INT32, 8, 32), "h": tensor(pl.FP16, 8, 32)}
    with pytest.raises(error, match=match):
        kernel(f"a = pl.load(x, [0, 0], [8, 32])\nj = pl.load(i, [0, 0], [8, 32])\n{body}", **given)


MASK = "mask_pattern=pl.tile.MaskPattern.P0101"


@pytest.mark.parametrize(
    ("body", "error", "match"),
    [
        (f"r = pl.gather(x, dim=-1, index=i, {MASK})", AttributeValueError, "mutually exclusive, got dim, index, mask"),
        ('r = pl.gather(x, mask_pattern=1, cmp_mode="eq")', AttributeValueError, "mutually exclusive"),
        ("r = pl.gather(x)", AttributeValueError, "gather needs one of its forms"),
        ("r = pl.gather(x, index=i)", AttributeValueError, "requires both dim and index, got index only"),
        ("r = pl.gather(x, -1)", AttributeValueError, "requires both dim and index, got dim only"),
        ("r = pl.gather(x, kvalue=1.0, out_cols=4)", AttributeValueError, "got kvalue and out_cols only"),
        ("r = pl.gather(x, -1, i, output_dtype=pl.INT32)", AttributeValueError, "output_dtype is only valid"),
        (f"r = pl.gather(x, {MASK}, offset=3)", AttributeValueError, "offset/count_dtype are only valid"),
        (f"r = pl.gather(x, {MASK}, count_dtype=pl.INT32)", AttributeValueError, "offset/count_dtype are only"),
        (f"r = pl.gather(x, {MASK}, output_dtype=pl.FP16)", DTypeMismatchError, "bits of fp32 cannot be read as fp16"),
        ("r = pl.gather(x, mask_pattern=8)", AttributeValueError, "no mask pattern 8"),
        ("r = pl.gather(x, 2, i)", AttributeValueError, "axis 2 of a 2-D value does not exist"),
        ("r = pl.gather(x, -1, x)", DTypeMismatchError, "`index` must hold int32 here, got fp32"),
        ("r = pl.gather(x, -1, pl.cast(i, pl.INT16))", DTypeMismatchError, "`index` must hold int32"),
        ("r = pl.gather(pl.slice(x, [4, 32], [0, 0]), -1, i)", ShapeMismatchError, "an index of 8 is larger than"),
        ("r = pl.gather(pl.cast(x, pl.INT8), -1, i)", DTypeMismatchError, "int8 elements are not supported"),
        ('r = pl.gather(x, kvalue=1.0, cmp_mode="above", out_cols=4)', AttributeValueError, "cannot be 'above'"),
        ('r = pl.gather(x, kvalue=1.0, cmp_mode=6, out_cols=4)', AttributeValueError, "cannot be 6"),
        ('r = pl.gather(x, kvalue=1.0, cmp_mode="eq", out_cols=0)', AttributeValueError, "positive integer, got 0"),
        ('r = pl.gather(x, kvalue=pl.read(i, [0, 0]), cmp_mode="eq", out_cols=4)', DTypeMismatchError, "of theirs"),
        ('r = pl.gather(x, kvalue=1.0, cmp_mode=0, out_cols=4, count_dtype=pl.INT8)', DTypeMismatchError, "counts are"),
        ("r = pl.tile.gather_mask(pl.slice(a, [8, 30], [0, 0]), 3)", ShapeMismatchError, "one of 4 columns, and 30"),
        ("r = pl.tile.gather(a, a)", DTypeMismatchError, "`indices` must hold int32"),
        ("r = pl.gatherb(a, j)", DTypeMismatchError, "`offset` must hold uint32 here, got int32"),
        ("r = pl.gatherb(a, pl.slice(pl.cast(j, pl.UINT32), [8, 4], [0, 0]))", ShapeMismatchError, "multiple of 8"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(body: str, error: type[ParserError], match: str) -> None:
    wrong(body, error, match)


def test_results_are_as_valid_as_what_they_are_taken_by() -> None:
    given = {"x": tensor(pl.FP32, 8, 32), "i": tensor(pl.INT32, 8, 32)}
    function = kernel(
        "a = pl.load(x, [0, 0], [8, 32], valid_shape=[4, 31])\nr = pl.tile.gather_mask(a, 2)\n"
        "j = pl.load(i, [0, 0], [8, 32], valid_shape=[3, 5])\ns = pl.tile.gather(pl.fillpad(a), j)\n"
        "t = pl.gather(x, mask_pattern=7)",
        **given,
    )
    assert type_of(function, "r") == TileType((8, 16), pl.FP32, (4, 15))
    assert type_of(function, "s") == TileType((8, 32), pl.FP32, (3, 5))
    assert type_of(function, "t") == TensorType((8, 32), pl.FP32, (8, 32))


@pytest.mark.parametrize("dtype", [pl.INT8, pl.FP16, pl.FP32, pl.FP64], ids=str)
@pytest.mark.parametrize("count", [1, 7, 16, 40])
def test_columns_are_picked_by_indices(dtype: DataType, count: int) -> None:
    x, columns = sample(RNG, dtype, 5, 30), RNG.integers(0, 30, (1, count)).astype("int32")
    body = (
        f"t = pl.load(x, [0, 0], [5, 30])\nplaces = pl.load(columns, [0, 0], [1, {count}])\n"
        "out = pl.store(t[:, places], [1, 2], out)\n"
        "turned = pl.transpose(t, 0, 1)\n"
        f"line = pl.reshape(places, [{count}, 1])\nout = pl.store(turned[places], [8, 0], out)\n"
        "out = pl.store(pl.tile.pick(t + t, line, axis=-1), [50, 0], out)"
    )
    want = np.zeros((60, 50), dtype.numpy)
    want[1:6, 2 : 2 + count] = x[:, columns[0]]
    want[8 : 8 + count, :5] = x.T[columns[0]]
    want[50:55, :count] = (x + x)[:, columns[0]]
    same(computed(body, x=x, columns=columns, out=np.zeros((60, 50), dtype.numpy)), want)


@pytest.mark.parametrize("bad", [-1, 30])
def test_a_column_that_is_not_there_is_an_error(bad: int) -> None:
    columns = np.array([[0, 3, bad, 4]], np.int32)
    body = "out = pl.store(pl.load(x, [0, 0], [5, 30])[:, pl.load(columns, [0, 0], [1, 4])], [0, 0], out)"
    x, out = sample(RNG, pl.FP32, 5, 30), np.zeros((5, 4), np.float32)
    assert all(f"index {bad} " in error for error in refused(body, x=x, columns=columns, out=out))
