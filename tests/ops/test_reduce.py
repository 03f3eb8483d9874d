"""Reductions: what is folded, and what folding nothing gives."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, bfloat16, counting, kernel, on_the_interpreter, out, run, scalar, tensor, type_of
from ops.native import Native

import tilewright.language as pl
from tilewright.core.types import TileType
from tilewright.dtypes import DataType
from tilewright.errors import DTypeMismatchError, OperandError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")


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


@on_the_interpreter
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


def halves(*shape: int) -> Array:
    """Return fp16 numbers whose sums round at nearly every step."""
    return np.random.default_rng(7).uniform(-100, 100, shape).astype(np.float16)


def summed_in_order(x: Array) -> Array:
    total = np.zeros((*x.shape[:-2], 1, x.shape[-1]), x.dtype)
    for row in range(x.shape[-2]):
        total = total + x[..., row : row + 1, :]
    return total


def summed_in_pairs(x: Array) -> Array:
    rows: list[Array] = [x[..., row : row + 1, :] for row in range(x.shape[-2])]
    count = len(rows)
    while count > 1:
        last = rows[count - 1]
        for i in range(count // 2):
            rows[i] = rows[2 * i] + rows[2 * i + 1]
        if count % 2:
            rows[0] = rows[0] + last
        count //= 2
    return rows[0]


@pytest.mark.parametrize("shape", [(37, 70), (1, 5), (2, 16), (2, 19, 33)], ids=str)
def test_a_sum_of_fp16_columns_rounds_after_every_addition(shape: tuple[int, ...]) -> None:
    x, zeros, summed = halves(*shape), [0] * len(shape), (*shape[:-2], 1, shape[-1])
    body = f"""
    a = pl.load(x, {zeros}, {list(shape)})
    down = pl.store(pl.col_sum(a), {zeros}, down)
    pairs = pl.store(pl.col_sum(a, pl.create_tile({list(shape)}, dtype=pl.FP16)), {zeros}, pairs)
    whole = pl.assemble(whole, pl.col_sum(x), {zeros})
    """
    outputs = dict.fromkeys(("down", "pairs", "whole"), out(pl.FP16, *summed))
    function = kernel(body, x=tensor(pl.FP16, *shape), **outputs)
    _, *results = Native(function).run([x, *(np.zeros(summed, np.float16) for _ in outputs)])
    for (native, interpreted), want in zip(results, (summed_in_order, summed_in_pairs, summed_in_order), strict=True):
        assert native.tolist() == interpreted.tolist() == want(x).tolist()
    assert shape[-2] < 3 or results[0][0].tolist() != np.sum(x, -2, np.float64, keepdims=True).astype(x.dtype).tolist()


@pytest.mark.parametrize("rows", range(10))
def test_sums_of_fp16_columns_take_the_valid_rows(rows: int) -> None:
    body = """
    a = pl.load(x, [0, 0], [9, 37], valid_shape=[n, 37])
    down = pl.store(pl.col_sum(a), [0, 0], down)
    pairs = pl.store(pl.col_sum(a, pl.create_tile([9, 37], dtype=pl.FP16)), [0, 0], pairs)
    turned = pl.assemble(turned, pl.col_sum(pl.transpose(pl.set_validshape(y, 37, n), 0, 1)), [0, 0])
    """
    outputs = dict.fromkeys(("down", "pairs", "turned"), out(pl.FP16, 1, 37))
    function = kernel(body, x=tensor(pl.FP16, 9, 37), y=tensor(pl.FP16, 37, 9), n=scalar(pl.INDEX), **outputs)
    x = halves(9, 37)
    given: list[Array | float] = [x, np.ascontiguousarray(np.transpose(x)), rows]
    results = Native(function).run([*given, *(np.zeros((1, 37), np.float16) for _ in outputs)])
    wanted = summed_in_order(x[:rows])
    paired = summed_in_pairs(x[:rows]) if rows else wanted
    for (native, interpreted), want in zip(results[2:], (wanted, paired, wanted), strict=True):
        assert native.tolist() == interpreted.tolist() == want.tolist()


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_sums_of_fp16_columns_are_the_same_whatever_is_known_of_the_extents(rows: int) -> None:
    function = kernel(
        "out = pl.assemble(out, pl.col_sum(x), [0, 0])", x=tensor(pl.FP16, "M", "N"), out=out(pl.FP16, 1, "N")
    )
    x = halves(rows, 37)
    *_, (native, interpreted) = Native(function).run([x, np.ones((1, 37), np.float16)])
    assert native.tolist() == interpreted.tolist() == summed_in_order(x).tolist()


@on_the_interpreter
@pytest.mark.parametrize("dtype", [pl.FP32, pl.BF16], ids=str)
@pytest.mark.parametrize("name", ["col_sum", "row_sum"])
def test_other_sums_round_once(name: str, dtype: DataType) -> None:
    function = kernel(
        f"out = pl.assemble(out, pl.{name}(x), [0, 0])",
        x=tensor(dtype, 16, 16),
        out=out(dtype, *((1, 16) if name == "col_sum" else (16, 1))),
    )
    x = np.random.default_rng(3).uniform(-100, 100, (16, 16)).astype(dtype.numpy)
    exact = np.sum(x.astype(np.float64), -2 if name == "col_sum" else -1, keepdims=True)
    assert run(function, x).tolist() == exact.astype(dtype.numpy).tolist()
