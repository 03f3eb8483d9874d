"""Broadcasts: a tile met with a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.kernels import counting, kernel, out, run, scalar, tensor

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import DTypeMismatchError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")


def test_a_column_vector_meets_every_column() -> None:
    function = kernel(
        "out = pl.assemble(out, pl.row_expand_mul(x, v), [0, 0])",
        x=tensor(pl.FP32, 2, 3),
        v=tensor(pl.FP32, 2, 1),
        out=out(pl.FP32, 2, 3),
    )
    assert run(function, counting(2, 3), np.array([[10], [100]], np.float32)).tolist() == [[0, 10, 20], [300, 400, 500]]


def test_a_row_vector_meets_every_row() -> None:
    function = kernel(
        "out = pl.assemble(out, pl.col_expand_mul(x, v), [0, 0])",
        x=tensor(pl.FP32, 2, 3),
        v=tensor(pl.FP32, 1, 3),
        out=out(pl.FP32, 2, 3),
    )
    assert run(function, counting(2, 3), np.array([[1, 10, 100]], np.float32)).tolist() == [[0, 10, 200], [3, 40, 500]]


def test_a_row_expansion_needs_a_column_vector() -> None:
    with pytest.raises(ShapeMismatchError, match=r"needs a column vector of shape \[2, 1\], got \[1, 3\]"):
        kernel("y = pl.row_expand_add(x, v)", x=tensor(pl.FP32, 2, 3), v=tensor(pl.FP32, 1, 3))


def test_a_column_expansion_needs_a_row_vector() -> None:
    with pytest.raises(ShapeMismatchError, match=r"needs a row vector of shape \[1, 3\], got \[2, 1\]"):
        kernel("y = pl.col_expand_add(x, v)", x=tensor(pl.FP32, 2, 3), v=tensor(pl.FP32, 2, 1))


@pytest.mark.parametrize("name", ["row_expand_div", "row_expand_expdif"])
def test_a_quotient_or_exponential_needs_floats(name: str) -> None:
    with pytest.raises(DTypeMismatchError, match="int32 elements are not supported"):
        kernel(f"y = pl.{name}(x, v)", x=tensor(pl.INT32, 2, 3), v=tensor(pl.INT32, 2, 1))


def test_a_vector_can_promote_its_target() -> None:
    function = kernel(
        "out = pl.assemble(out, pl.row_expand_add(x, v), [0, 0])",
        x=tensor(pl.INT32, 1, 2),
        v=tensor(pl.FP32, 1, 1),
        out=out(pl.FP32, 1, 2),
    )
    assert run(function, np.array([[1, 2]], np.int32), np.array([[0.5]], np.float32)).tolist() == [[1.5, 2.5]]


def test_a_repeated_vector_shares_no_memory_with_the_vector() -> None:
    function = kernel(
        """
        wide = pl.row_expand(x, v)
        pl.write(wide, [0, 0], 7)
        out = pl.assemble(out, v, [0, 0])
        out = pl.assemble(out, pl.slice(wide, [1, 1], [0, 0]), [0, 1])
        """,
        x=tensor(pl.INT32, 1, 2),
        v=tensor(pl.INT32, 1, 1),
        out=out(pl.INT32, 1, 2),
    )
    assert run(function, counting(1, 2, dtype=pl.INT32), np.array([[3]], np.int32)).tolist() == [[3, 7]]


def test_expands_fills_the_valid_part_of_a_tile_like_its_target() -> None:
    function = kernel(
        """
        a = pl.load(x, [0, 0], [2, 4], valid_shape=[1, 3])
        out = pl.store(pl.expands(a, 0.5), [0, 0], out)
        """,
        x=tensor(pl.FP32, 2, 4),
        out=out(pl.FP32, 2, 4),
    )
    assert run(function, counting(2, 4)).tolist() == [[0.5, 0.5, 0.5, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("dtype", [pl.INT8, pl.INT16, pl.INT32, pl.FP16, pl.FP32], ids=str)
@pytest.mark.parametrize("columns", [45, 32, 16, 8, 3])
def test_rows_of_32_bytes_are_repeated(dtype: DataType, columns: int) -> None:
    width = 32 // dtype.get_byte()
    function = kernel(
        f"""
        a = pl.load(x, [0, 0], [5, {columns}], valid_shape=[rows, {columns - 1}])
        v = pl.load(y, [0, 0], [5, {width}], valid_shape=[rows, {width}])
        out = pl.store(pl.row_expand_add(a, v), [0, 0], out)
        """,
        x=tensor(dtype, 5, columns),
        y=tensor(dtype, 5, width),
        rows=scalar(pl.INDEX),
        out=out(dtype, 5, columns),
    )
    x: Any = counting(5, columns, dtype=dtype)
    y: Any = counting(5, width, dtype=dtype) * 3
    want = (x + y[:, np.arange(columns) % width]).astype(dtype.numpy)
    want[3:], want[:, -1] = 0, 0
    assert run(function, x, y, 3).tolist() == want.tolist()


@pytest.mark.parametrize("columns", [8, 20])
def test_rows_of_32_bytes_with_one_valid_column_are_a_vector(columns: int) -> None:
    function = kernel(
        f"""
        v = pl.set_validshape(pl.load(y, [0, 0], [5, 8]), 5, 1)
        out = pl.store(pl.tile.row_expand_add(tile=pl.load(x, [0, 0], [5, {columns}]), row_vec=v), [0, 0], out)
        """,
        x=tensor(pl.FP32, 5, columns),
        y=tensor(pl.FP32, 5, 8),
        out=out(pl.FP32, 5, columns),
    )
    x, y = counting(5, columns), counting(5, 8)
    assert run(function, x, y).tolist() == (x + y[:, :1]).tolist()


@pytest.mark.parametrize(
    ("name", "dtype", "loaded"),
    [("add", pl.FP16, "[5, 8]"), ("add", pl.FP32, "[5, 8], valid_shape=[5, 3]"), ("mul", pl.FP32, "[5, 8]")],
)
def test_other_rows_are_no_row_operand(name: str, dtype: DataType, loaded: str) -> None:
    body = f"r = pl.row_expand_{name}(pl.load(x, [0, 0], [5, 32]), pl.load(y, [0, 0], {loaded}))"
    with pytest.raises(ShapeMismatchError):
        kernel(body, x=tensor(pl.FP32, 5, 32), y=tensor(dtype, 5, 8))
