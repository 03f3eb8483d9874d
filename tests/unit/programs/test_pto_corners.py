"""Corners of ops as PTO text: elements, counts and buffers that the machines take otherwise; they give every bit."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from property.exported import read_back, run_exported

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.programs.pto_text.export import as_pto
from tilewright.programs.pto_text.values import NoPtoError

DTYPES: dict[str, Any] = {
    "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "FP32": np.float32, "FP64": np.float64, "INT8": np.int8,
    "INT32": np.int32, "UINT32": np.uint32, "INT64": np.int64, "UINT64": np.uint64,
}  # fmt: skip
FLOATS, INTEGERS = ("FP16", "BF16", "FP32", "FP64"), ("INT8", "INT32", "UINT32", "INT64", "UINT64")
CASES = [
    *[(dtype, formula) for dtype in ("INT8", "INT32", "INT64") for formula in ("pl.shl(x, -1)", "pl.shr(x, -3)")],
    *[(dtype, "pl.shl(x, 67)") for dtype in INTEGERS],
    *[(dtype, "pl.where(pl.isfinite(x), x, x * x)") for dtype in (*INTEGERS, *FLOATS)],
    *[(dtype, "pl.sels(pl.cmp(x, 3, cmp_type=4), x, scalar=5)") for dtype in DTYPES],
    *[(dtype, "pl.sel(pl.cmp(x[:, :1], 3, cmp_type=4), x[:, :1], x[:, 1:2])") for dtype in DTYPES],
    *[(dtype, "pl.sel(pl.cast(x, pl.UINT8), x, x + x)") for dtype in DTYPES],
    *[("FP32", f"pl.{word}(pl.cast(pl.cast(x, pl.INT8), pl.FP32) * 0.5)") for word in ("floor", "ceil", "round")],
    ("FP16", "pl.cast(pl.ceil(pl.cast(pl.cast(x, pl.INT8), pl.FP32)), pl.FP16)"),
    (
        "FP16",
        "pl.cast(pl.tile.full([8, 12], dtype=pl.BF16, value=1.0) * pl.cast(pl.read(x, [0, 1]), pl.BF16), pl.FP16)",
    ),
    ("BF16", "pl.cast(pl.cast(x, pl.FP16) * pl.cast(pl.read(x, [0, 1]), pl.FP16), pl.BF16)"),
    *[
        ("FP32", f"pl.cast(pl.tile.full([8, 12], dtype=pl.{small}, value=2.0), pl.FP32)")
        for small in ("FP8E4M3FN", "FP8E8M0")
    ],
    ("FP32", "pl.cast(pl.cmp(pl.reshape(x, [2, 4, 12]), pl.reshape(x[:2], [2, 1, 12]), cmp_type=1)[0], pl.FP32)"),
    ("FP32", "pl.reshape(pl.cast(pl.reshape(pl.cast(x + 1.0, pl.FP8E8M0), [12, 8]), pl.FP32), [8, 12])"),
    ("FP32", "pl.cast(pl.fillpad(pl.set_validshape(pl.cast(x + 1.0, pl.FP8E4M3FN), 3, 5)), pl.FP32)"),
]


def program_of(dtype: str, formula: str) -> Program:
    lines = [
        "@pl.program",
        "class P:",
        "    @pl.function(type=pl.FunctionType.InCore)",
        f"    def main(self, given: pl.Tensor[[8, 12], pl.{dtype}], out: pl.Out[pl.Tensor[[8, 12], pl.{dtype}]]):",
        "        x = pl.load(given, [0, 0], [8, 12])",
        f"        return pl.store({formula}, [0, 0], out)",
    ]
    program = pl.parse("\n".join(lines))
    assert isinstance(program, Program)
    return program


@pytest.mark.parametrize(("dtype", "formula"), CASES)
def test_a_formula_gives_the_same_bits(dtype: str, formula: str) -> None:
    program, given = program_of(dtype, formula), np.random.default_rng(5).integers(0, 9, (8, 12)).astype(DTYPES[dtype])
    given[0, :2] = [7, 3]
    if dtype in FLOATS:
        given[1, :3] = [np.inf, -np.inf, np.nan]
    text = as_pto(program)
    with np.errstate(all="ignore"):
        for platform in ("interpret", "cpu"):
            wanted, found = np.zeros_like(given), np.zeros_like(given)
            ir.compile(program, platform=platform)(given, wanted)
            run_exported(text, "main", [given, found], {}, platform)
            np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64), text)


# tensors by index


@pl.jit
def put_rows(cache: pl.InOut[pl.Tensor], blocks: pl.InOut[pl.Tensor], at: pl.Tensor, new: pl.Tensor, deep: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        cache = pl.scatter_update(cache, -2, at, new)
        blocks = pl.scatter_update(blocks, -2, at, deep)


def test_rows_of_tensors_are_put_where_indices_say() -> None:
    rng = np.random.default_rng(1)
    at = np.array([[3, 0, 3], [5, 1, 2]], np.int32)
    made = [rng.normal(size=shape).astype(np.float32) for shape in ((7, 5), (4, 2, 1, 5), (6, 5), (2, 3, 1, 5))]
    wanted, found = read_back(put_rows, lambda: [*(each.copy() for each in made[:2]), at, *made[2:]], "interpret")
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    assert not np.array_equal(wanted[0], made[0])


@pl.jit
def looked_up(x: pl.Tensor, places: pl.Out[pl.Tensor], counts: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        found, total = pl.gather(x, kvalue=2.0, cmp_mode="ge", out_cols=4, offset=10)
        pl.store(pl.load(found, [0, 0], [6, 4]), [0, 0], places)
        pl.store(pl.load(total, [0, 0], [1, 6]), [0, 0], counts)


def test_places_of_what_compares_in_a_tensor() -> None:
    x = np.random.default_rng(2).integers(0, 5, (6, 9)).astype(np.float32)
    x[2] = 0

    def made() -> list[Any]:
        return [x, np.zeros((6, 4), np.int32), np.zeros((1, 6), np.int32)]

    wanted, found = read_back(looked_up, made, "interpret")
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    assert wanted[2].max() > 4 > wanted[2].min()


@pl.jit
def places_in_columns(x: pl.Tensor, down: pl.Out[pl.Tensor], along: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        column = pl.load(x, [0, 0], [9, 1])
        pl.store(pl.col_argmin(column, column), [0, 0], down)
        pl.store(pl.row_argmax(column, column), [0, 0], along)


def test_places_of_extremes_in_a_column() -> None:
    x = np.array([[4, 3, 9, 1, 5, 1, 9, 2, 7]], np.float32).T

    def made() -> list[Any]:
        return [x, np.zeros((1, 1), np.int32), np.ones((9, 1), np.int32)]

    wanted, found = read_back(places_in_columns, made, "interpret")
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    assert wanted[1][0, 0] == 3


@pl.jit
def wide(x: pl.Tensor[[512, 256], pl.FP32], out: pl.Out[pl.Tensor[[512, 256], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.exp(pl.load(x, [0, 0], [512, 256])), [0, 0], out)


def test_a_tile_that_is_too_large_is_to_be_several() -> None:
    with pytest.raises(NoPtoError, match="a tile of 524288 bytes is more than") as caught:
        wide.compile().as_pto()
    assert caught.value.help == "take smaller tiles, several of them, in a loop"
