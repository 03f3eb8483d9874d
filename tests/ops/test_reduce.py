"""Reductions: what is folded, and what folding nothing gives."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import bfloat16, counting, kernel, out, run, tensor, type_of

import tilewright.language as pl
from tilewright.core.types import TileType
from tilewright.dtypes import DataType
from tilewright.errors import DTypeMismatchError, OperandError, ShapeMismatchError


def test_a_reduction_folds_only_the_valid_part() -> None:
    function = kernel(
        """
        a = pl.load(x, [0, 0], [2, 4], valid_shape=[2, 3])
        out = pl.store(pl.row_sum(a), [0, 0], out)
        """,
        x=tensor(pl.FP32, 2, 4),
        out=out(pl.FP32, 2, 1),
    )
    assert run(function, counting(2, 4)).tolist() == [[3], [15]]


@pytest.mark.parametrize(
    ("name", "dtype", "neutral"),
    [
        ("sum", pl.FP32, 0),
        ("prod", pl.FP32, 1),
        ("max", pl.FP32, -np.inf),
        ("min", pl.FP32, np.inf),
        ("max", pl.INT8, -128),
        ("min", pl.UINT8, 255),
    ],
)
def test_folding_nothing_gives_the_neutral_element(name: str, dtype: DataType, neutral: float) -> None:
    function = kernel(
        f"""
        a = pl.load(x, [0, 0], [2, 4], valid_shape=[2, 0])
        out = pl.store(pl.row_{name}(a), [0, 0], out)
        """,
        x=tensor(dtype, 2, 4),
        out=out(dtype, 2, 1),
    )
    assert run(function, counting(2, 4, dtype=dtype), fill=7).tolist() == [[neutral], [neutral]]


def test_a_column_reduction_keeps_the_axis_before_the_last() -> None:
    function = kernel("a = pl.load(x, [0, 0, 0], [2, 3, 4])\ns = pl.col_sum(a)", x=tensor(pl.FP32, 2, 3, 4))
    type_ = type_of(function, "s")
    assert isinstance(type_, TileType) and type_.shape == (2, 1, 4)


def test_integers_wrap_when_their_sum_overflows() -> None:
    function = kernel("out = pl.assemble(out, pl.row_sum(x), [0, 0])", x=tensor(pl.INT8, 1, 2), out=out(pl.INT8, 1, 1))
    assert run(function, np.array([[100, 100]], np.int8)).tolist() == [[-56]]


def test_a_bfloat16_sum_is_rounded_once() -> None:
    function = kernel("out = pl.assemble(out, pl.row_sum(x), [0, 0])", x=tensor(pl.BF16, 1, 3), out=out(pl.BF16, 1, 1))
    just_above_a_tie = np.array([[1, 2**-8, 2**-30]], bfloat16)
    assert run(function, just_above_a_tie).astype(float) == [[1 + 2**-7]]


def test_nan_wins_a_row_maximum() -> None:
    function = kernel("out = pl.assemble(out, pl.row_max(x), [0, 0])", x=tensor(pl.FP32, 1, 3), out=out(pl.FP32, 1, 1))
    assert np.isnan(run(function, np.array([[1, np.nan, 3]], np.float32))).all()


def test_a_scratch_tile_smaller_than_the_input_is_refused() -> None:
    body = "a = pl.load(x, [0, 0], [4, 8])\nt = pl.create_tile([4, 4], dtype=pl.FP32)\ns = pl.row_sum(a, t)"
    with pytest.raises(ShapeMismatchError, match=r"tmp_tile needs fp32 elements and the input's \[4, 8\] or more"):
        kernel(body, x=tensor(pl.FP32, 4, 8))


def test_a_scratch_tile_of_another_element_type_is_refused() -> None:
    body = "a = pl.load(x, [0, 0], [4, 8])\nt = pl.create_tile([4, 8], dtype=pl.FP16)\ns = pl.row_sum(a, tmp_tile=t)"
    with pytest.raises(ShapeMismatchError, match="tmp_tile needs fp32 elements"):
        kernel(body, x=tensor(pl.FP32, 4, 8))


def test_a_tensor_reduction_takes_no_scratch_tile() -> None:
    body = "t = pl.create_tile([4, 8], dtype=pl.FP32)\ns = pl.tensor.row_sum(x, t)"
    with pytest.raises(OperandError, match="cannot mix Tensor and Tile"):
        kernel(body, x=tensor(pl.FP32, 4, 8))


def test_a_column_reduction_needs_two_axes() -> None:
    with pytest.raises(ShapeMismatchError, match="a rank of at least 2"):
        kernel("s = pl.col_max(x)", x=tensor(pl.FP32, 8))


def test_bools_are_not_summed() -> None:
    with pytest.raises(DTypeMismatchError, match="bool elements are not supported"):
        kernel("s = pl.row_sum(x)", x=tensor(pl.BOOL, 4, 8))
