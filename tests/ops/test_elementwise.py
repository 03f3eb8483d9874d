"""Elementwise ops: how element types, shapes and scalars meet."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, counting, kernel, out, run, scalar, tensor, type_of
from ops.native import Native, assert_same

import tilewright.language as pl
from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Call, constant
from tilewright.core.op import OPS
from tilewright.core.stmt import AssignStmt
from tilewright.core.types import TensorType, TileType
from tilewright.dtypes import DataType
from tilewright.errors import DTypeMismatchError, OperandError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")


def added(lhs: DataType, rhs: DataType) -> DataType:
    function = kernel("total = pl.add(x, y)", x=tensor(lhs, 4, 4), y=tensor(rhs, 4, 4))
    type_ = type_of(function, "total")
    assert isinstance(type_, TensorType)
    return type_.dtype


def applied(expression: str, x: Array, dtype: DataType) -> Array:
    """Return an expression over the tile `a`, which is `x`, both of one element type and shape."""
    shape = list(x.shape)
    body = f"a = pl.load(x, {[0] * x.ndim}, {shape})\nout = pl.store({expression}, {[0] * x.ndim}, out)\nreturn out"
    return run(kernel(body, x=tensor(dtype, *x.shape), out=out(dtype, *x.shape)), x)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result"),
    [
        (pl.FP32, pl.FP32, pl.FP32),
        (pl.INT64, pl.FP16, pl.FP16),
        (pl.INT8, pl.INT32, pl.INT32),
        (pl.UINT32, pl.INT32, pl.INT32),
        (pl.UINT64, pl.INT8, pl.UINT64),
        (pl.FP16, pl.BF16, pl.FP16),
        (pl.BF16, pl.FP16, pl.BF16),
        (pl.BF16, pl.FP32, pl.FP32),
    ],
)
def test_element_types_promote(lhs: DataType, rhs: DataType, result: DataType) -> None:
    assert added(lhs, rhs) == result


def test_operands_are_converted_before_they_meet() -> None:
    function = kernel(
        "out = pl.assemble(out, pl.mul(x, y), [0])", x=tensor(pl.INT8, 1), y=tensor(pl.INT32, 1), out=out(pl.INT32, 1)
    )
    assert run(function, np.array([100], np.int8), np.array([100], np.int32)) == [10000]


def test_a_row_and_a_column_broadcast_to_a_matrix() -> None:
    function = kernel(
        """
        row = pl.load(x, [0, 0], [1, 4])
        column = pl.load(y, [0, 0], [3, 1])
        out = pl.store(pl.sub(row, column), [0, 0], out)
        """,
        x=tensor(pl.FP32, 1, 4),
        y=tensor(pl.FP32, 3, 1),
        out=out(pl.FP32, 3, 4),
    )
    assert run(function, counting(1, 4), counting(3, 1)).tolist() == [[0, 1, 2, 3], [-1, 0, 1, 2], [-2, -1, 0, 1]]


def test_a_vector_broadcasts_along_missing_axes() -> None:
    function = kernel(
        "out = pl.assemble(out, pl.add(x, y), [0, 0])",
        x=tensor(pl.FP32, 2, 3),
        y=tensor(pl.FP32, 3),
        out=out(pl.FP32, 2, 3),
    )
    assert run(function, counting(2, 3), counting(3)).tolist() == [[0, 2, 4], [3, 5, 7]]


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(ShapeMismatchError, match=r"shapes that broadcast, got \[4, 8\] and \[4, 6\]"):
        kernel("z = pl.add(x, y)", x=tensor(pl.FP32, 4, 8), y=tensor(pl.FP32, 4, 6))


def test_bits_broadcast_too() -> None:
    function = kernel(
        """
        words = pl.load(x, [0, 0], [2, 1])
        places = pl.load(y, [0, 0], [1, 4])
        out = pl.store((words >> places) & 15, [0, 0], out)
        """,
        x=tensor(pl.INT32, 2, 1),
        y=tensor(pl.INT32, 1, 4),
        out=out(pl.INT32, 2, 4),
    )
    found = run(function, np.array([[0x4321], [0x8765]], np.int32), np.array([[0, 4, 8, 12]], np.int32))
    assert found.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_the_first_operand_that_spans_an_axis_decides_what_is_valid() -> None:
    function = kernel(
        """
        narrow = pl.load(x, [0, 0], [4, 8], valid_shape=[2, 8])
        row = pl.load(x, [0, 0], [1, 8], valid_shape=[1, 5])
        first = pl.add(narrow, row)
        second = pl.add(row, narrow)
        """,
        x=tensor(pl.FP32, 4, 8),
    )
    types = [type_of(function, name) for name in ("first", "second")]
    assert [t.valid for t in types if isinstance(t, TileType)] == [(2, 8), (2, 5)]


def test_a_literal_takes_the_element_type_it_meets() -> None:
    function = kernel("y = pl.add(x, 1)\nz = pl.add(x, 0.1)", x=tensor(pl.FP16, 4))
    literals = [s.value.args[1] for s in function.body if isinstance(s, AssignStmt) and isinstance(s.value, Call)]
    assert literals == [constant(1.0, pl.FP16), constant(float(np.float16(0.1)), pl.FP16)]


@pytest.mark.parametrize("operand", ["x", "pl.load(x, [0], [2])"], ids=["tensor", "tile"])
def test_a_fraction_cannot_meet_integers(operand: str) -> None:
    with pytest.raises(OperandError, match="0.5 is not a number int32 can hold") as caught:
        kernel(f"y = {operand} * 0.5", x=tensor(pl.INT32, 2))
    assert caught.value.help == "int32 has no fractions; pl.cast(..., pl.FP32) converts what it meets"


@pytest.mark.parametrize("operand", ["x", "pl.load(x, [0], [2])"], ids=["tensor", "tile"])
def test_a_scalar_of_floats_cannot_meet_integers(operand: str) -> None:
    with pytest.raises(DTypeMismatchError, match="a scalar of fp32 cannot meet int32 elements") as caught:
        kernel(f"y = {operand} * n", x=tensor(pl.INT32, 2), n=scalar(pl.FP32))
    assert caught.value.help == "convert it: pl.cast(n, pl.INT32), or the elements: pl.cast(..., pl.FP32)"


def test_a_float_literal_without_a_fraction_is_an_integer_beside_integers() -> None:
    assert applied("pl.mul(a, 2.0)", np.array([3], np.int32), pl.INT32).tolist() == [6]
    function = kernel("out = pl.assemble(out, pl.mul(x, 2.0), [0])", x=tensor(pl.INT16, 2), out=out(pl.INT16, 2))
    assert run(function, np.array([1, 3], np.int16)).tolist() == [2, 6]


@pytest.mark.parametrize("literal", ["inf", "-inf", "nan"])
def test_an_infinite_literal_cannot_meet_integers(literal: str) -> None:
    with pytest.raises(OperandError, match=f"{literal} is not a number int32 can hold"):
        applied(f'pl.maximum(a, float("{literal}"))', np.array([3], np.int32), pl.INT32)


def test_a_scalar_never_changes_the_type_of_a_tile() -> None:
    function = kernel(
        "out = pl.store(pl.add(pl.load(x, [0], [1]), n), [0], out)",
        x=tensor(pl.FP16, 1),
        n=scalar(pl.FP32),
        out=out(pl.FP16, 1),
    )
    assert run(function, np.array([1], np.float16), 0.5) == [1.5]


def test_a_wider_scalar_promotes_a_tensor() -> None:
    type_ = type_of(kernel("y = pl.add(x, n)", x=tensor(pl.FP16, 1), n=scalar(pl.FP32)), "y")
    assert isinstance(type_, TensorType) and type_.dtype == pl.FP32


def test_an_index_is_refused_with_the_cast_that_mends_it() -> None:
    with pytest.raises(DTypeMismatchError, match=r"an index cannot meet fp32 elements") as caught:
        kernel("for i in pl.range(4):\n    y = pl.add(x, i)", x=tensor(pl.FP32, 4))
    assert caught.value.help == "convert it: pl.cast(i, pl.FP32)"


def test_a_tensor_and_a_tile_do_not_mix() -> None:
    with pytest.raises(OperandError, match="cannot mix Tensor and Tile"):
        kernel("z = pl.add(x, pl.load(x, [0, 0], [4, 4]))", x=tensor(pl.FP32, 4, 4))


def test_two_scalars_are_no_elementwise_operands() -> None:
    with pytest.raises(OperandError, match="a tile or tensor is needed"):
        kernel("z = pl.maximum(n, n)", n=scalar(pl.FP32))


def test_a_scalar_form_refuses_a_tile_on_the_right() -> None:
    with pytest.raises(OperandError, match="`rhs` of `add` must be a scalar"):
        kernel("z = pl.adds(x, x)", x=tensor(pl.FP32, 4))


def test_a_scalar_form_is_the_op_itself() -> None:
    forms = [str(kernel(f"z = pl.{name}(x, 3)", x=tensor(pl.INT32, 4))) for name in ("ands", "and_")]
    assert forms[0] == forms[1]


def test_an_element_type_an_op_does_not_take_is_refused() -> None:
    with pytest.raises(DTypeMismatchError, match="fp32 elements are not supported here") as caught:
        kernel("z = pl.not_(x)", x=tensor(pl.FP32, 4))
    assert "int32" in caught.value.help and "fp32" not in caught.value.help


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos", "tanh"])
def test_a_function_of_integers_gives_fp32(name: str) -> None:
    type_ = type_of(kernel(f"y = pl.{name}(x)", x=tensor(pl.INT32, 4)), "y")
    assert isinstance(type_, TensorType) and type_.dtype == pl.FP32


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_of_half_floats_are_rounded_once(name: str) -> None:
    x = np.array([0.5, -3.0, 100.0, 60000.0], np.float16)
    exact = getattr(np, name)(x.astype(np.float64)).astype(np.float16)
    assert applied(f"pl.{name}(a)", x, pl.FP16).tolist() == exact.tolist()


def test_integer_division_drops_the_fraction_toward_zero() -> None:
    x = np.array([7, -7, -32768, 5], np.int16)
    assert applied("pl.div(a, 2)", x, pl.INT16).tolist() == [3, -3, -16384, 2]


def test_an_integer_divided_by_zero_is_zero() -> None:
    assert applied("pl.div(a, 0)", np.array([7, -7], np.int32), pl.INT32).tolist() == [0, 0]


def test_a_tile_division_broadcasts_like_other_arithmetic() -> None:
    x = np.array([[2, 4], [8, 6]], np.float32)
    assert applied("pl.div(a, pl.slice(a, [1, 2], [0, 0]))", x, pl.FP32).tolist() == [[1, 1], [4, 1.5]]


def test_nan_wins_a_maximum_and_a_minimum() -> None:
    x = np.array([np.nan], np.float32)
    assert np.isnan(applied("pl.maximum(a, 1.0)", x, pl.FP32)) and np.isnan(applied("pl.minimum(a, 1.0)", x, pl.FP32))


def test_negating_zero_sets_its_sign() -> None:
    assert np.signbit(applied("pl.neg(a)", np.array([0.0], np.float32), pl.FP32)).tolist() == [True]


def test_leaky_relu_leaves_zero_alone() -> None:
    x = np.array([0.0, -2.0, 3.0], np.float32)
    assert applied('pl.lrelu(a, float("inf"))', x, pl.FP32).tolist() == [0.0, -np.inf, 3.0]


def test_shift_counts_are_taken_modulo_the_width() -> None:
    assert applied("pl.shl(a, 9)", np.array([3], np.int8), pl.INT8).tolist() == [6]


def test_a_right_shift_keeps_the_sign() -> None:
    assert applied("pl.shr(a, 1)", np.array([-4], np.int8), pl.INT8).tolist() == [-2]


def test_arithmetic_on_an_accumulator_happens_in_vector_memory() -> None:
    body = "a = pl.load(x, [0, 0], [4, 4])\nb = pl.relu(pl.matmul(a, a))"
    type_ = type_of(kernel(body, x=tensor(pl.FP32, 4, 4)), "b")
    assert isinstance(type_, TileType) and type_.memory is MemorySpace.Vec


def test_a_computed_tensor_shares_memory_with_nothing() -> None:
    function = kernel(
        """
        copy = pl.maximum(x, x)
        pl.write(copy, [0], 9)
        out = pl.assemble(out, x, [0])
        """,
        x=tensor(pl.INT32, 2),
        out=out(pl.INT32, 2),
    )
    assert run(function, np.array([1, 2], np.int32)).tolist() == [1, 2]


def test_silu_keeps_its_digits_where_its_exponential_has_none() -> None:
    made = kernel(
        "out = pl.store(pl.silu(pl.load(x, [0, 0], [1, 256])), [0, 0], out)",
        x=tensor(pl.FP32, 1, 256),
        out=out(pl.FP32, 1, 256),
    )
    x = np.linspace(-104, -80, 256, dtype=np.float32)[None]
    (_, (got, want)) = Native(made).run([x, np.zeros_like(x)])
    assert_same(got, want, OPS["tile.silu"].spec.ulp)
