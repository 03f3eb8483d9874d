"""Matrix products: shapes, valid parts, and the type they accumulate in."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from ops.kernels import Array, counting, inout, kernel, on_the_interpreter, out, run, scalar, tensor, type_of
from ops.native import Native

import tilewright.language as pl
from tilewright.core.types import TensorType, TileType
from tilewright.dtypes import DataType
from tilewright.errors import DTypeMismatchError, ExecutionError, OperandError, ShapeMismatchError
from tilewright.ops.product_types import accumulator
from tilewright.runtime import RunConfig

pytestmark = pytest.mark.usefixtures("on_target")

LOADS = "a = pl.load(x, [0, 0], [2, 3])\nb = pl.load(y, [0, 0], [3, 4])\n"


def product(expression: str, x: Array, y: Array, dtype: DataType = pl.FP32, result: DataType = pl.FP32) -> Array:
    """Return an expression over the tiles `a` and `b`, loaded from a 2 by 3 and a 3 by 4 matrix."""
    body = f"{LOADS}out = pl.store({expression}, [0, 0], out)"
    return run(kernel(body, x=tensor(dtype, 2, 3), y=tensor(dtype, 3, 4), out=out(result, 2, 4)), x, y)


def type_of_product(body: str, **parameters: str) -> TensorType | TileType:
    type_ = type_of(kernel(body, **parameters), "p")
    assert isinstance(type_, (TensorType, TileType))
    return type_


def by_hand(x: Array, y: Array) -> list[list[float]]:
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*y.tolist(), strict=True)]
        for row in x.tolist()
    ]


def test_a_product_sums_rows_times_columns() -> None:
    x, y = counting(2, 3), counting(3, 4)
    assert product("pl.matmul(a, b)", x, y).tolist() == by_hand(x, y)


def test_small_floats_accumulate_in_fp32() -> None:
    x, y = np.full((2, 3), 300, np.float16), np.full((3, 4), 300, np.float16)
    assert product("pl.matmul(a, b)", x, y, pl.FP16).tolist() == [[270000.0] * 4] * 2


def test_small_integers_accumulate_in_int32() -> None:
    x, y = np.full((2, 3), -128, np.int8), np.full((3, 4), 127, np.int8)
    assert product("pl.matmul(a, b)", x, y, pl.INT8, pl.INT32).tolist() == [[-48768] * 4] * 2


@pytest.mark.parametrize(
    ("dtype", "number", "other", "result", "expected"),
    [
        (pl.INT64, 1 << 31, pl.INT64, pl.INT64, 9 << 31),
        (pl.INT32, 1 << 30, pl.INT32, pl.INT32, 1 << 30),
        (pl.INT64, 1 << 62, pl.INT64, pl.INT64, (9 << 62) - (1 << 65)),
        (pl.INT64, 1 << 31, pl.INT32, pl.FP32, float(9 << 31)),
        (pl.UINT32, 1 << 31, pl.UINT32, pl.UINT64, 9 << 31),
        (pl.UINT64, 1 << 63, pl.UINT64, pl.UINT64, 1 << 63),
        (pl.UINT8, 200, pl.UINT8, pl.INT32, 1800),
        (pl.UINT8, 200, pl.UINT8, pl.UINT8, 1800 % 256),
        (pl.UINT64, 1 << 63, pl.FP32, pl.FP32, 9.0 * (1 << 63)),
        (pl.FP32, (1 << 24) - 1, pl.FP32, pl.INT64, 9 * ((1 << 24) - 1) // 16 * 16),
    ],
)
def test_tensors_are_summed_in_fp32_or_all_the_bits_that_they_and_their_result_have(
    dtype: DataType, number: int, other: DataType, result: DataType, expected: float
) -> None:
    body = f"out[:, :] = pl.matmul(x, y, out_dtype=pl.{result.symbol})"
    function = kernel(body, x=tensor(dtype, 2, 3), y=tensor(other, 3, 4), out=inout(result, 2, 4))
    factors = np.full((2, 3), number, dtype.numpy), np.full((3, 4), 3, other.numpy)
    *_, (native, interpreted) = Native(function).run([*factors, np.zeros((2, 4), result.numpy)])
    assert native.tolist() == interpreted.tolist() == [[expected] * 4] * 2


def test_a_tile_product_needs_equal_element_types() -> None:
    with pytest.raises(DTypeMismatchError, match="equal element types, got fp16 and fp32"):
        kernel(LOADS + "p = pl.matmul(a, b)", x=tensor(pl.FP16, 2, 3), y=tensor(pl.FP32, 3, 4))


def test_a_tile_product_has_the_type_it_accumulates_in() -> None:
    with pytest.raises(DTypeMismatchError, match="a product of these tiles is fp32, not fp16"):
        kernel(LOADS + "p = pl.matmul(a, b, out_dtype=pl.FP16)", x=tensor(pl.FP16, 2, 3), y=tensor(pl.FP16, 3, 4))


def test_a_tensor_product_keeps_the_promoted_type_or_the_one_asked_for() -> None:
    operands = {"x": tensor(pl.FP16, 2, 3), "y": tensor(pl.FP32, 3, 4)}
    assert type_of_product("p = pl.matmul(x, y)", **operands).dtype == pl.FP32
    assert type_of_product("p = pl.matmul(x, y, out_dtype=pl.BF16)", **operands).dtype == pl.BF16


@pytest.mark.parametrize("option", ["a_trans", "b_trans", "c_matrix_nz"])
def test_tiles_are_not_transposed_by_options(option: str) -> None:
    with pytest.raises(OperandError, match="are for tensors"):
        kernel(f"{LOADS}p = pl.matmul(a, b, {option}=True)", x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4))


@pytest.mark.parametrize("option", ["a_trans", "b_trans"])
def test_tiles_that_are_accumulated_are_not_transposed_by_options(option: str) -> None:
    body = f"{LOADS}p = pl.matmul_acc(pl.matmul(a, b), a, b, {option}=True)"
    with pytest.raises(OperandError, match="are for tensors") as caught:
        kernel(body, x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4))
    assert "transpose_view" in caught.value.help


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16, pl.BF16, pl.INT8, pl.UINT8, pl.INT32, pl.INT64], ids=str)
@pytest.mark.parametrize("batch", [(), (2,), (2, 1)], ids=len)
def test_products_of_tensors_take_each_operand_as_its_option_says(dtype: DataType, batch: tuple[int, ...]) -> None:
    """Matrices here are 5 by 7 and 7 by 9; all numbers are whole and small, so every sum is exact."""
    held = accumulator(dtype)
    shape = (*batch, 5, 9)
    zeros = [0] * len(shape)
    lines, annotations, values = list[str](), dict[str, str](), list[Array]()
    for turned in itertools.product((False, True), repeat=2):
        options = f"a_trans={turned[0]}, b_trans={turned[1]}"
        a, b, c, p, q = (f"{name}{int(turned[0])}{int(turned[1])}" for name in "abcpq")
        lines += [
            f"{p} = pl.assemble({p}, pl.matmul({a}, {b}, {options}, out_dtype=pl.{held.symbol}), {zeros})",
            f"{q} = pl.assemble({q}, pl.matmul_acc({c}, {a}, {b}, {options}), {zeros})",
        ]
        shapes = [(*batch, *_turned((5, 7), turned[0])), (*batch[1:], *_turned((7, 9), turned[1]))]
        for name, extents in zip((a, b), shapes, strict=True):
            annotations[name] = tensor(dtype, *extents)
            values.append(np.reshape(np.arange(np.prod(extents)) % 11, extents).astype(dtype.numpy))
        annotations |= {c: tensor(held, *shape), p: out(held, *shape), q: out(held, *shape)}
        values += [np.full(shape, 3, held.numpy), np.zeros(shape, held.numpy), np.zeros(shape, held.numpy)]
    results = dict(zip(annotations, Native(kernel("\n".join(lines), **annotations)).run(values), strict=True))
    for left, right in itertools.product((0, 1), repeat=2):
        a, b, c, p, q = (results[f"{name}{left}{right}"] for name in "abcpq")
        expected = np.matmul(_integers(a[1], left), _integers(b[1], right))
        for got, want in ((p, expected), (q, expected + _integers(c[1], 0))):
            assert got[0].tolist() == got[1].tolist() == want.tolist()


def _integers(matrix: Array, is_turned: int) -> Array:
    return (np.swapaxes(matrix, -1, -2) if is_turned else matrix).astype(np.int64)


def _turned(shape: tuple[int, int], is_turned: bool) -> tuple[int, ...]:
    return shape[::-1] if is_turned else shape


def test_tensors_are_transposed_by_options() -> None:
    body = "out = pl.assemble(out, pl.matmul(x, y, a_trans=True, b_trans=True), [0, 0])"
    function = kernel(body, x=tensor(pl.FP32, 3, 2), y=tensor(pl.FP32, 4, 3), out=out(pl.FP32, 2, 4))
    x, y = counting(3, 2), counting(4, 3)
    assert run(function, x, y).tolist() == by_hand(np.transpose(x), np.transpose(y))


def test_inner_sizes_must_agree() -> None:
    with pytest.raises(ShapeMismatchError, match=r"equal inner sizes, got \[2, 3\] and \[2, 3\]"):
        kernel("p = pl.matmul(x, x)", x=tensor(pl.FP32, 2, 3))


def test_only_the_valid_inner_part_is_summed() -> None:
    body = """
    a = pl.load(x, [0, 0], [2, 3], valid_shape=[2, 2])
    b = pl.load(y, [0, 0], [3, 4])
    out = pl.store(pl.matmul(a, b), [0, 0], out)
    """
    function = kernel(body, x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4), out=out(pl.FP32, 2, 4))
    x, y = counting(2, 3), counting(3, 4)
    assert run(function, x, y).tolist() == by_hand(x[:, :2], y[:2])


def test_a_product_is_valid_where_rows_and_columns_are() -> None:
    body = """
    a = pl.load(x, [0, 0], [2, 3], valid_shape=[1, 3])
    b = pl.load(y, [0, 0], [3, 4], valid_shape=[3, 2])
    p = pl.matmul(a, b)
    """
    assert type_of_product(body, x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4)).valid == (1, 2)


def test_more_valid_columns_than_rows_are_refused() -> None:
    body = "a = pl.load(x, [0, 0], [2, 3])\nb = pl.load(y, [0, 0], [3, 4], valid_shape=[2, 4])\np = pl.matmul(a, b)"
    with pytest.raises(ShapeMismatchError, match="data that is not there: 3 valid columns on the left, 2 valid rows"):
        kernel(body, x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4))


@on_the_interpreter
def test_more_valid_columns_than_rows_are_refused_when_it_runs() -> None:
    body = "a = pl.load(x, [0, 0], [2, 3])\nb = pl.load(y, [0, 0], [3, 4], valid_shape=[n, 4])\n"
    function = kernel(
        f"{body}out = pl.store(pl.matmul(a, b), [0, 0], out)",
        x=tensor(pl.FP32, 2, 3),
        y=tensor(pl.FP32, 3, 4),
        n=scalar(pl.INT32),
        out=out(pl.FP32, 2, 4),
    )
    with pytest.raises(ExecutionError, match="data that is not there: 3 valid columns on the left, 2 valid rows"):
        run(function, counting(2, 3), counting(3, 4), 2)


def test_tiles_with_batch_axes_have_an_op_of_their_own() -> None:
    body = "a = pl.load(x, [0, 0, 0], [1, 2, 2])\np = pl.matmul(a, a)"
    with pytest.raises(ShapeMismatchError, match="this product needs 2-D tiles") as caught:
        kernel(body, x=tensor(pl.FP32, 1, 2, 2))
    assert "batch_matmul" in caught.value.help


def test_batch_axes_of_tensors_broadcast() -> None:
    body = "out = pl.assemble(out, pl.matmul(x, y), [0, 0, 0])"
    function = kernel(body, x=tensor(pl.FP32, 2, 2, 3), y=tensor(pl.FP32, 3, 4), out=out(pl.FP32, 2, 2, 4))
    x, y = counting(2, 2, 3), counting(3, 4)
    assert run(function, x, y).tolist() == [by_hand(x[0], y), by_hand(x[1], y)]


def test_batch_axes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeMismatchError, match="batch axes do not fit"):
        kernel("p = pl.matmul(x, y)", x=tensor(pl.FP32, 2, 2, 3), y=tensor(pl.FP32, 3, 3, 4))


def test_an_accumulator_is_added_to() -> None:
    x, y = counting(2, 3), counting(3, 4)
    once = np.array(by_hand(x, y))
    assert product("pl.matmul_acc(pl.matmul(a, b), a, b)", x, y).tolist() == (2 * once).tolist()


def test_an_accumulator_is_overwritten_where_the_condition_holds() -> None:
    body = f"""
    {LOADS.strip().replace(chr(10), chr(10) + "    ")}
    acc = pl.create_tile([2, 4], dtype=pl.FP32, target_memory=pl.Mem.Acc)
    for k in pl.range(3):
        acc = pl.matmul_acc(acc, a, b, init_cond=k == 0)
    out = pl.store(acc, [0, 0], out)
    """
    function = kernel(body, x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4), out=out(pl.FP32, 2, 4))
    x, y = counting(2, 3), counting(3, 4)
    assert run(function, x, y).tolist() == (3 * np.array(by_hand(x, y))).tolist()


def test_an_accumulator_holds_the_type_products_are_summed_in() -> None:
    body = LOADS + "acc = pl.create_tile([2, 4], dtype=pl.FP16)\np = pl.matmul_acc(acc, a, b)"
    with pytest.raises(DTypeMismatchError, match="acc must hold fp32 elements, got fp16"):
        kernel(body, x=tensor(pl.FP16, 2, 3), y=tensor(pl.FP16, 3, 4))


def test_an_accumulator_is_shaped_like_the_product() -> None:
    body = LOADS + "acc = pl.create_tile([4, 2], dtype=pl.FP32)\np = pl.matmul_acc(acc, a, b)"
    with pytest.raises(ShapeMismatchError, match=r"acc must be shaped like the product, tile\[2, 4, fp32\]"):
        kernel(body, x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4))


def test_a_condition_is_a_bool() -> None:
    body = LOADS + "p = pl.matmul_acc(pl.matmul(a, b), a, b, init_cond=1)"
    with pytest.raises(OperandError, match="`init_cond` of `matmul_acc` must be a condition"):
        kernel(body, x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4))


def test_a_bias_is_added_to_every_row() -> None:
    x, y = counting(2, 3), counting(3, 4)
    expected = np.array(by_hand(x, y)) + [0, 1, 2, 3]
    bias = "pl.slice(b, [1, 4], [0, 0])"
    assert product(f"pl.matmul_bias(a, b, {bias})", x, y).tolist() == expected.tolist()


def test_a_bias_is_one_row() -> None:
    body = LOADS + "p = pl.matmul_bias(a, b, a)"
    with pytest.raises(ShapeMismatchError, match=r"bias must be fp32 of shape \[1, 4\]"):
        kernel(body, x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4))


def test_gemv_multiplies_a_row() -> None:
    body = "r = pl.load(x, [1, 0], [1, 3])\nb = pl.load(y, [0, 0], [3, 4])\nout = pl.store(pl.gemv(r, b), [0, 0], out)"
    function = kernel(body, x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4), out=out(pl.FP32, 1, 4))
    x, y = counting(2, 3), counting(3, 4)
    assert run(function, x, y).tolist() == by_hand(x[1:], y)


@pytest.mark.parametrize("call", ["gemv(a, b)", "gemv_acc(a, a, b)", "gemv_bias(a, b, b)"])
def test_gemv_needs_a_row(call: str) -> None:
    with pytest.raises(ShapeMismatchError, match=r"gemv needs a row vector \[1, K\], got tile\[2, 3, fp32\]"):
        kernel(f"{LOADS}p = pl.{call}", x=tensor(pl.FP32, 2, 3), y=tensor(pl.FP32, 3, 4))


def test_batches_of_tiles_are_multiplied_one_by_one() -> None:
    body = """
    a = pl.load(x, [0, 0, 0], [2, 2, 2])
    acc = pl.batch_matmul(a, a)
    out = pl.store(pl.batch_matmul_acc(acc, a, a), [0, 0, 0], out)
    """
    function = kernel(body, x=tensor(pl.FP32, 2, 2, 2), out=out(pl.FP32, 2, 2, 2))
    x = counting(2, 2, 2)
    assert run(function, x).tolist() == (2 * np.array([by_hand(m, m) for m in x])).tolist()


def test_bools_are_not_multiplied() -> None:
    with pytest.raises(DTypeMismatchError, match="bool elements are not supported"):
        kernel("p = pl.matmul(x, x)", x=tensor(pl.BOOL, 2, 2))


@pytest.mark.parametrize(
    ("left", "right"), [((3, 5, 4), (3, 4, 6)), ((3, 5, 4), (4, 6)), ((5, 4), (3, 4, 6)), ((2, 1, 5, 4), (1, 3, 4, 6))]
)
def test_the_operator_multiplies_along_leading_axes(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = counting(*left), counting(*right)
    want = a @ b
    loads = (f"pl.load({name}, {[0] * each.ndim}, {[*each.shape]})" for name, each in (("x", a), ("y", b)))
    body = f"out = pl.store({' @ '.join(loads)}, {[0] * want.ndim}, out)"
    types = {"x": tensor(pl.FP32, *left), "y": tensor(pl.FP32, *right), "out": out(pl.FP32, *want.shape)}
    np.testing.assert_array_equal(run(kernel(body, **types), a, b), want)


@pl.jit
def whole(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x @ y


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [(np.uint8, np.int8, np.int16), (np.int8, np.uint8, np.int16), (np.uint32, np.int32, np.int64)],
)
@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_tensors_of_two_types_are_multiplied_in_one_that_holds_both(
    platform: str, left: Any, right: Any, result: Any
) -> None:
    a: Array = np.full((2, 3), np.iinfo(left).max // 2, left)
    b: Array = np.full((3, 4), np.iinfo(right).max // 2, right)
    found: Array = np.zeros((2, 4), result)
    whole(a, b, found, config=RunConfig(platform=platform))
    wanted: Array = a.astype(np.int64) @ b.astype(np.int64)
    assert found.tolist() == wanted.astype(result).tolist()


@pytest.mark.parametrize(
    ("lhs", "rhs", "help"),
    [
        (pl.INT8, pl.FP32, r"convert the left one: pl.cast\(..., pl.FP32\)"),
        (pl.FP32, pl.BF16, r"convert the right one: pl.cast\(..., pl.FP32\)"),
        (pl.UINT8, pl.INT8, r"convert the left one and the right one: pl.cast\(..., pl.INT16\)"),
        (pl.UINT64, pl.INT64, "no integers hold both"),
    ],
)
def test_the_help_for_tiles_of_two_types_names_one_that_holds_both(lhs: DataType, rhs: DataType, help: str) -> None:
    with pytest.raises(DTypeMismatchError, match=help):
        kernel(LOADS + "p = pl.matmul(a, b)", x=tensor(lhs, 2, 3), y=tensor(rhs, 3, 4))


def test_a_product_that_would_wrap_names_the_type_to_sum_in() -> None:
    with pytest.raises(DTypeMismatchError, match="out_dtype=pl.INT32"):
        whole(np.ones((2, 3), np.int8), np.ones((3, 4), np.int8), np.zeros((2, 4), np.int32))
