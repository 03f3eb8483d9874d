"""Elements, rows and columns of tiles by place as PTO text: read back, they give every bit."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from property.exported import read_back

import tilewright.language as pl

Wide = pl.Tensor[[16, 40], pl.FP32]
Half = pl.Tensor[[16, 20], pl.FP16]
"""Rows that fill no whole lines of 32 bytes, as PTO's do."""


@pl.jit
def rows(x: Wide, i: pl.Tensor[[1, 24], pl.INT32], out: pl.Out[pl.Tensor[[24, 40], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.tile.pick(pl.load(x, [0, 0], [16, 40]), pl.load(i, [0, 0], [1, 24])), [0, 0], out)


@pl.jit
def columns(x: Wide, i: pl.Tensor[[1, 24], pl.UINT8], out: pl.Out[pl.Tensor[[16, 24], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.tile.pick(pl.load(x, [0, 0], [16, 40]), pl.load(i, [0, 0], [1, 24]), axis=1), [0, 0], out)


@pl.jit
def of_a_vector(x: pl.Tensor[[40], pl.INT64], i: pl.Tensor[[3, 5], pl.INT64], out: pl.Out[pl.Tensor[[3, 5], pl.INT64]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.tile.pick(pl.load(x, [0], [40]), pl.load(i, [0, 0], [3, 5])), [0, 0], out)


@pl.jit
def gathered(x: Half, i: pl.Tensor[[5, 9], pl.INT16], out: pl.Out[pl.Tensor[[5, 9], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.tile.gather(pl.load(x, [0, 0], [16, 20]), pl.load(i, [0, 0], [5, 9])), [0, 0], out)


@pl.jit
def blocks(x: pl.Tensor[[4, 64], pl.FP16], i: pl.Tensor[[2, 8], pl.UINT32], out: pl.Out[pl.Tensor[[2, 64], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        made = pl.gatherb(pl.load(x, [0, 0], [4, 64]), pl.load(i, [0, 0], [2, 8]), output_dtype=pl.INT32)
        pl.store(made, [0, 0], out)


@pl.jit
def by_pattern(
    x: Wide,
    y: pl.Tensor[[4, 16], pl.INT64],
    i: pl.Out[pl.Tensor[[16, 20], pl.INT32]],
    out: pl.Out[pl.Tensor[[4, 4], pl.INT64]],
):
    """Columns whose bits are read as another type, and some of 64 bits, which no pattern of PTO takes."""
    with pl.at(level=pl.Level.CORE_GROUP):
        bits = pl.tile.gather_mask(pl.load(x, [0, 0], [16, 40]), pl.tile.MaskPattern.P1010, output_dtype=pl.INT32)
        pl.store(bits, [0, 0], i)
        pl.store(pl.tile.gather_mask(pl.load(y, [0, 0], [4, 16]), pl.tile.MaskPattern.P0100), [0, 0], out)


@pl.jit
def put_by_pattern(x: Wide, y: pl.Tensor[[16, 20], pl.FP32], out: pl.Out[Wide]):
    with pl.at(level=pl.Level.CORE_GROUP):
        taken, put = pl.load(x, [0, 0], [16, 40]), pl.load(y, [0, 0], [16, 20])
        pl.store(pl.tile.scatter_mask(taken, put, pl.tile.MaskPattern.P1010) + taken, [0, 0], out)


@pl.jit
def scattered(x: Half, y: pl.Tensor[[4, 20], pl.FP16], i: pl.Tensor[[4, 20], pl.INT16], out: pl.Out[Half]):
    with pl.at(level=pl.Level.CORE_GROUP):
        made = pl.tile.scatter(pl.load(x, [0, 0], [16, 20]), pl.load(y, [0, 0], [4, 20]), pl.load(i, [0, 0], [4, 20]))
        pl.store(made, [0, 0], out)


@pl.jit
def updated(x: Half, i: pl.Tensor[[2, 3], pl.INT32], y: pl.Tensor[[6, 20], pl.FP16], out: pl.Out[Half]):
    with pl.at(level=pl.Level.CORE_GROUP):
        places = pl.load(i, [0, 0], [2, 3])
        pl.store(pl.scatter_update(pl.load(x, [0, 0], [16, 20]), -2, places, pl.load(y, [0, 0], [6, 20])), [0, 0], out)


@pl.jit
def turned(x: Half, out: pl.Out[Half]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.flip(pl.load(x, [0, 0], [16, 20])), [0, 0], out)


@pl.jit
def every_other(x: Half, out: pl.Out[pl.Tensor[[8, 7], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.strided(pl.load(x, [0, 0], [16, 20]), [2, 3]), [0, 0], out)


@pl.jit
def reshaped(x: Half, out: pl.Out[pl.Tensor[[10, 32], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.reshape(pl.load(x, [0, 0], [16, 20]), [10, 32]), [0, 0], out)


@pl.jit
def written(x: pl.Tensor[[4, 20], pl.INT8], out: pl.Out[pl.Tensor[[4, 20], pl.INT8]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        before = pl.load(x, [0, 0], [4, 20])
        pl.store(pl.add(pl.write(before, [2, 3], 7), before), [0, 0], out)


@pl.jit
def filled(x: pl.Tensor[[4, 20], pl.INT64], out: pl.Out[pl.Tensor[[4, 24], pl.INT64]]):
    """Elements of 64 bits are filled one by one."""
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.fillpad_expand(pl.load(x, [0, 0], [4, 20], valid_shape=[3, 7]), [4, 24], -1), [0, 0], out)


@pl.jit
def seen_otherwise(x: Half, out: pl.Out[pl.Tensor[[16, 10], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.reinterpret_view(pl.load(x, [0, 0], [16, 20]), pl.INT32), [0, 0], out)


@pl.jit
def part(x: Half, out: pl.Out[pl.Tensor[[4, 7], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        half = pl.tile.extract(pl.load(x, [0, 0], [16, 20]), 3, 5, [4, 7], target_memory=pl.Mem.Left)
        pl.store(half, [0, 0], out)


@pl.jit
def bytes_as_numbers(x: pl.Tensor[[4, 20], pl.UINT8], out: pl.Out[pl.Tensor[[4, 20], pl.INT32]]):
    """Numbers without a sign keep what they are: 200, 200 + 100 in bytes, and whether they are more than 100."""
    with pl.at(level=pl.Level.CORE_GROUP):
        n = pl.read(x, [0, 0])
        more = pl.cast(n + n // 2, pl.INT32)
        pl.store(pl.tile.full([4, 20], dtype=pl.INT32, value=pl.cast(n, pl.INT32)), [0, 0], out)
        pl.write(out, [0, 1], more)
        if n > 100:
            pl.write(out, [0, 2], pl.cast(pl.cast(n, pl.FP32), pl.INT32, mode="trunc"))


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)


def below(limit: int, *shape: int, dtype: Any = np.int32) -> Any:
    """Numbers below a limit, no two of them the same where there are as many."""
    count = int(np.prod(shape))
    return np.resize(np.random.default_rng(1).permutation(limit), count).reshape(shape).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


F16, I64 = np.float16, np.int64
CASES: dict[Any, Any] = {
    rows: lambda: [numbers(16, 40), below(16, 1, 24), zeros(24, 40)],
    columns: lambda: [numbers(16, 40), below(40, 1, 24, dtype=np.uint8), zeros(16, 24)],
    of_a_vector: lambda: [numbers(40, dtype=I64), below(40, 3, 5, dtype=I64), zeros(3, 5, dtype=I64)],
    gathered: lambda: [numbers(16, 20, dtype=F16), below(320, 5, 9, dtype=np.int16), zeros(5, 9, dtype=F16)],
    blocks: lambda: [numbers(4, 64, dtype=F16), below(480, 2, 8, dtype=np.uint32), zeros(2, 64, dtype=np.int32)],
    by_pattern: lambda: [
        numbers(16, 40), numbers(4, 16, dtype=I64), zeros(16, 20, dtype=np.int32), zeros(4, 4, dtype=I64)
    ],
    put_by_pattern: lambda: [numbers(16, 40), numbers(16, 20), zeros(16, 40)],
    scattered: lambda: [
        numbers(16, 20, dtype=F16), numbers(4, 20, dtype=F16), below(320, 4, 20, dtype=np.int16),
        zeros(16, 20, dtype=F16),
    ],
    updated: lambda: [numbers(16, 20, dtype=F16), below(16, 2, 3), numbers(6, 20, dtype=F16), zeros(16, 20, dtype=F16)],
    turned: lambda: [numbers(16, 20, dtype=F16), zeros(16, 20, dtype=F16)],
    every_other: lambda: [numbers(16, 20, dtype=F16), zeros(8, 7, dtype=F16)],
    reshaped: lambda: [numbers(16, 20, dtype=F16), zeros(10, 32, dtype=F16)],
    written: lambda: [numbers(4, 20, dtype=np.int8), zeros(4, 20, dtype=np.int8)],
    filled: lambda: [numbers(4, 20, dtype=I64), zeros(4, 24, dtype=I64)],
    seen_otherwise: lambda: [numbers(16, 20, dtype=F16), zeros(16, 10, dtype=np.int32)],
    part: lambda: [numbers(16, 20, dtype=F16), zeros(4, 7, dtype=F16)],
    bytes_as_numbers: lambda: [np.full((4, 20), 200, np.uint8), zeros(4, 20, dtype=np.int32)],
}  # fmt: skip


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_every_bit_is_the_same_when_it_is_read_back(kernel: Any, platform: str) -> None:
    wanted, found = read_back(kernel, CASES[kernel], platform)
    assert wanted[-1].any()
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


@pl.jit
def ends_early(x: Half, out: pl.InOut[Half], n: pl.Scalar[pl.INT32]):
    """What follows a branch that returns is not done where it does; a tile is stored under another shape."""
    if pl.read(x, [0, 0]) > 0.0:
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [16, 20]), [0, 0], out)
        return
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [5, 4]) * 2.0, [4, 0], out, [4, 5])


@pytest.mark.parametrize("first", [-1.0, 1.0])
@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_a_branch_that_returns_is_the_last_thing_that_is_done(first: float, platform: str) -> None:
    def made() -> list[Any]:
        x = numbers(16, 20, dtype=F16)
        x[0, 0] = first
        return [x, zeros(16, 20, dtype=F16), 3]

    wanted, found = read_back(ends_early, made, platform)
    assert wanted[1].any()
    np.testing.assert_array_equal(found[1], wanted[1])


Small = pl.Tensor[[8, 32], pl.FP8E4M3FN]
Smaller = pl.Tensor[[8, 32], pl.FP8E5M2]


@pl.jit
def small_floats(x: Small, y: Smaller, a: pl.Out[Small], b: pl.Out[Smaller], out: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        whole, part = pl.load(x, [0, 0], [8, 32]), pl.load(y, [0, 0], [5, 19])
        pl.store(whole, [0, 0], a)
        pl.store(pl.slice(part, [3, 16], [1, 2]), [2, 3], b)
        pl.store(pl.cast(whole, pl.FP32), [0, 0], out)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_floats_of_one_byte_are_moved_as_bytes(platform: str) -> None:
    kinds = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)

    def made() -> list[Any]:
        codes = [np.arange(256, dtype=np.uint8).reshape(8, 32).view(kind) for kind in kinds]
        return [*codes, *(np.zeros((8, 32), kind) for kind in (*kinds, np.float32))]

    wanted, found = read_back(small_floats, made, platform)
    for got, want in zip(found[2:], wanted[2:], strict=True):
        assert want.view(np.uint8).any()
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
