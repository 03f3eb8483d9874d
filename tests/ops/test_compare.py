"""Comparison and selection: packed masks for tiles, zeros and ones for tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.kernels import counting, kernel, out, run, scalar, tensor, type_of

import tilewright.language as pl
from tilewright.core.types import TileType
from tilewright.dtypes import DataType
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


@pytest.mark.parametrize("carrier", [pl.UINT8, pl.INT8, pl.UINT16, pl.INT16, pl.UINT32, pl.INT32], ids=str)
def test_a_mask_from_memory_has_its_first_column_in_the_least_bit(carrier: DataType) -> None:
    width = carrier.bits
    words: Any = np.random.default_rng(3).integers(0, 256, (5, -(-40 // width) * width // 8)).astype(np.uint8)
    function = kernel(
        f"""
        m = pl.load(mask, [0, 0], [5, {words.shape[1] * 8 // width}])
        a = pl.load(x, [0, 0], [5, 40], valid_shape=[rows, columns])
        out = pl.store(pl.sel(m, a, pl.neg(a)), [0, 0], out)
        """,
        mask=tensor(carrier, 5, words.shape[1] * 8 // width),
        x=tensor(pl.FP32, 5, 40),
        rows=scalar(pl.INDEX),
        columns=scalar(pl.INDEX),
        out=out(pl.FP32, 5, 40),
    )
    x = counting(5, 40) + 1
    bits = (words[:, np.arange(40) // 8] >> (np.arange(40) % 8)) & 1
    for rows, columns in ((5, 40), (4, 37), (1, 1), (3, 0)):
        want = np.zeros((5, 40), np.float32)
        want[:rows, :columns] = np.where(bits, x, -x)[:rows, :columns]
        assert run(function, words.view(carrier.numpy), x, rows, columns).tolist() == want.tolist()


def test_every_word_of_alternating_bits_selects_the_odd_columns() -> None:
    function = kernel(
        "a = pl.load(x, [0, 0], [1, 64])\nmask = pl.load(m, [0, 0], [1, 2])\n"
        "out = pl.store(pl.sels(mask, a, scalar=0), [0, 0], out)",
        m=tensor(pl.UINT32, 1, 2),
        x=tensor(pl.INT16, 1, 64),
        out=out(pl.INT16, 1, 64),
    )
    x = counting(1, 64, dtype=pl.INT16) + 1
    want = np.where(np.arange(64) % 2, x, 0)
    assert run(function, np.full((1, 2), 0xAAAAAAAA, np.uint32), x).tolist() == want.tolist()


@pytest.mark.parametrize("dtype", [pl.UINT8, pl.UINT16, pl.UINT32], ids=str)
@pytest.mark.parametrize("number", ["-1", "{most}", "n"])
def test_a_negative_number_fills_unsigned_elements_with_its_bits(dtype: DataType, number: str) -> None:
    most = dtype.limits[1]
    function = kernel(
        f"""
        a = pl.load(x, [0, 0], [1, 8])
        m = pl.cmp(a, 3, cmp_type=pl.CmpType.LT)
        out = pl.store(pl.sels(m, a, scalar={number.format(most=most)}), [0, 0], out)
        """,
        x=tensor(dtype, 1, 8),
        n=scalar(pl.INT32),
        out=out(dtype, 1, 8),
    )
    assert run(function, counting(1, 8, dtype=dtype), -1).tolist() == [[0, 1, 2, *[most] * 5]]


def test_a_selection_spreads_and_promotes() -> None:
    function = kernel(
        """
        a = pl.load(x, [0, 0], [4, 8])
        b = pl.load(y, [0, 0], [1, 8])
        out = pl.store(pl.sel(pl.cmp(a, 10.0, cmp_type=pl.CmpType.LT), a, b), [0, 0], out)
        """,
        x=tensor(pl.FP16, 4, 8),
        y=tensor(pl.FP32, 1, 8),
        out=out(pl.FP32, 4, 8),
    )
    x, y = counting(4, 8, dtype=pl.FP16), -counting(1, 8)
    assert run(function, x, y).tolist() == np.where(x < 10, x, y).tolist()


@pytest.mark.parametrize("extents", ["[8, 1]", "[4, 2]"])
@pytest.mark.parametrize("dtype", [pl.UINT8, pl.FP32])
def test_a_mask_has_a_bit_for_every_element(extents: str, dtype: DataType) -> None:
    body = f"a = pl.load(x, [0, 0], [8, 16])\ns = pl.sels(pl.load(m, [0, 0], {extents}), a, scalar=1.0)"
    with pytest.raises(ShapeMismatchError, match="needs a mask of"):
        kernel(body, x=tensor(pl.FP32, 8, 16), m=tensor(dtype, 8, 2))


def test_a_mask_is_valid_where_the_elements_are() -> None:
    body = "a = pl.load(x, [0, 0], [8, 16])\ns = pl.sels(pl.load(m, [0, 0], [8, 2], valid_shape=[8, 1]), a, scalar=1.0)"
    with pytest.raises(ShapeMismatchError, match="valid words of 8 bits"):
        kernel(body, x=tensor(pl.FP32, 8, 16), m=tensor(pl.UINT8, 8, 2))
