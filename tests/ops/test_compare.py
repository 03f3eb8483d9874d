"""Comparison and selection: packed masks for tiles, zeros and ones for tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest
from ops.kernels import counting, kernel, out, run, scalar, tensor, type_of

import tilewright.language as pl
from tilewright.core.types import TileType
from tilewright.errors import AttributeValueError, OperandError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")

TESTS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize(("code", "meaning"), list(enumerate(TESTS)), ids=["eq", "ne", "lt", "le", "gt", "ge"])
def test_a_tensor_comparison_is_zero_or_one(code: int, meaning: Callable[[float, float], bool]) -> None:
    body = f"out = pl.assemble(out, pl.cmp(x, y, cmp_type={code}), [0])"
    function = kernel(body, x=tensor(pl.FP32, 4), y=tensor(pl.FP32, 4), out=out(pl.FP32, 4))
    x, y = [1.0, 2.0, np.nan, -0.0], [2.0, 2.0, np.nan, 0.0]
    expected = [float(meaning(a, b)) for a, b in zip(x, y, strict=True)]
    assert run(function, np.array(x, np.float32), np.array(y, np.float32)).tolist() == expected


def test_a_tensor_comparison_has_the_type_of_its_left_operand() -> None:
    body = "out = pl.assemble(out, pl.cmp(x, y, cmp_type=pl.CmpType.LT), [0])"
    function = kernel(body, x=tensor(pl.INT32, 2), y=tensor(pl.FP32, 2), out=out(pl.INT32, 2))
    assert run(function, np.array([1, 2], np.int32), np.array([1.5, 1.5], np.float32)).tolist() == [1, 0]


def test_integers_are_not_compared_with_a_fraction() -> None:
    with pytest.raises(OperandError, match="1.5 is not a number int32 can hold"):
        kernel("y = pl.cmp(x, 1.5, cmp_type=pl.CmpType.GT)", x=tensor(pl.INT32, 2))


@pytest.mark.parametrize("operand", ["x", "pl.load(x, [0], [2])"], ids=["tensor", "tile"])
def test_large_integers_without_a_sign_compare_by_value(operand: str) -> None:
    chosen = f"pl.cmp({operand}, 2**63, cmp_type=pl.CmpType.LT)"
    body = f"out = pl.assemble(out, {chosen}, [0])" if operand == "x" else f"m = {chosen}\nout = pl.store(m, [0], out)"
    result = out(pl.UINT64, 2) if operand == "x" else out(pl.UINT8, 32)
    got = run(kernel(body, x=tensor(pl.UINT64, 2), out=result), np.array([1, 2**63], np.uint64))
    assert got.tolist()[:2] == [1, 0]


def test_a_tensor_meets_a_scalar_it_cannot_hold() -> None:
    body = "out = pl.assemble(out, pl.cmp(x, n, cmp_type=pl.CmpType.LT), [0])"
    function = kernel(body, x=tensor(pl.INT8, 2), n=scalar(pl.INT32), out=out(pl.INT8, 2))
    assert run(function, np.array([100, -100], np.int8), 300).tolist() == [1, 1]


@pytest.mark.parametrize(("columns", "bytes_"), [(8, 32), (256, 32), (257, 64), (512, 64)])
def test_a_mask_row_is_packed_into_whole_blocks_of_32_bytes(columns: int, bytes_: int) -> None:
    body = f"a = pl.load(x, [0, 0], [4, {columns}])\nm = pl.cmp(a, a)"
    type_ = type_of(kernel(body, x=tensor(pl.FP32, 4, columns)), "m")
    assert isinstance(type_, TileType)
    assert (type_.shape, type_.dtype, type_.valid) == ((4, bytes_), pl.UINT8, (4, (columns + 7) // 8))


def test_a_mask_holds_eight_columns_a_byte_lowest_first() -> None:
    body = "a = pl.load(x, [0], [10])\nout = pl.store(pl.cmps(a, 8.0, cmp_type=pl.CmpType.GE), [0], out)"
    function = kernel(body, x=tensor(pl.FP32, 10), out=out(pl.UINT8, 2))
    assert run(function, np.array([9, 0, 0, 0, 0, 0, 0, 8, 0, 9], np.float32)).tolist() == [0b1000_0001, 0b10]


def test_an_annotation_of_the_packed_shape_is_accepted() -> None:
    body = "a = pl.load(x, [0, 0], [4, 8])\nm: pl.Tile[[4, 32], pl.UINT8] = pl.cmp(a, a)"
    assert type_of(kernel(body, x=tensor(pl.FP32, 4, 8)), "m")


@pytest.mark.parametrize("code", [-1, 6])
def test_there_are_six_comparisons(code: int) -> None:
    with pytest.raises(AttributeValueError, match=f"cmp_type must be 0 to 5, got {code}"):
        kernel(f"m = pl.cmp(x, x, cmp_type={code})", x=tensor(pl.FP32, 4))


def test_cmps_takes_a_scalar() -> None:
    with pytest.raises(OperandError, match="`rhs` of `cmp` must be a scalar"):
        kernel("m = pl.cmps(x, x)", x=tensor(pl.FP32, 4))


def test_selecting_takes_the_left_where_the_mask_is_set() -> None:
    body = """
    a = pl.load(x, [0], [10])
    b = pl.neg(a)
    out = pl.store(pl.sel(pl.cmps(a, 5.0, cmp_type=pl.CmpType.LT), a, b), [0], out)
    """
    result = run(kernel(body, x=tensor(pl.FP32, 10), out=out(pl.FP32, 10)), counting(10))
    assert result.tolist() == [0, 1, 2, 3, 4, -5, -6, -7, -8, -9]


def test_selecting_respects_the_valid_part() -> None:
    body = """
    a = pl.load(x, [0], [10], valid_shape=[3])
    out = pl.store(pl.sels(pl.cmps(a, 1.0, cmp_type=pl.CmpType.GE), a, scalar=0.5), [0], out)
    """
    result = run(kernel(body, x=tensor(pl.FP32, 10), out=out(pl.FP32, 10)), counting(10), fill=-1)
    assert result.tolist() == [0.5, 1, 2, -1, -1, -1, -1, -1, -1, -1]


def test_selecting_with_a_scalar_keeps_the_tile_type() -> None:
    body = "a = pl.load(x, [0], [2])\nout = pl.store(pl.sels(pl.cmps(a, 0), a, scalar=2.0), [0], out)"
    assert run(kernel(body, x=tensor(pl.INT32, 2), out=out(pl.INT32, 2)), np.array([0, 1], np.int32)).tolist() == [0, 2]


def test_selecting_mixed_types_promotes() -> None:
    body = """
    a = pl.load(x, [0], [2])
    b = pl.load(y, [0], [2])
    out = pl.store(pl.sel(pl.cmps(b, 0.0, cmp_type=pl.CmpType.GT), a, b), [0], out)
    """
    function = kernel(body, x=tensor(pl.INT32, 2), y=tensor(pl.FP32, 2), out=out(pl.FP32, 2))
    assert run(function, np.array([7, 8], np.int32), np.array([0.5, -0.5], np.float32)).tolist() == [7, -0.5]


@pytest.mark.parametrize(
    "mask", ["a", "pl.create_tile([4, 32], dtype=pl.UINT8)", "pl.create_tile([8, 1], dtype=pl.UINT8)"]
)
def test_a_mask_fits_what_it_selects(mask: str) -> None:
    body = f"a = pl.load(x, [0, 0], [8, 16])\ns = pl.sel({mask}, a, a)"
    with pytest.raises(ShapeMismatchError, match=r"needs a mask of tile\[8, 32, uint8\]"):
        kernel(body, x=tensor(pl.FP32, 8, 16))


def test_selected_tiles_have_equal_shapes() -> None:
    body = "a = pl.load(x, [0, 0], [8, 16])\ns = pl.sel(pl.cmp(a, a), a, pl.slice(a, [1, 16], [0, 0]))"
    with pytest.raises(ShapeMismatchError, match="equal shapes"):
        kernel(body, x=tensor(pl.FP32, 8, 16))
