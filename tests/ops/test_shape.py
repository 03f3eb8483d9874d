"""Shape: views, windows, padding."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import TARGETS
from ops.kernels import Array, counting, inout, kernel, launch, on_the_interpreter, out, run, scalar, tensor, type_of

import tilewright.language as pl
from tilewright.core.types import TensorType, TileType
from tilewright.errors import (
    DTypeMismatchError,
    ExecutionError,
    OperandError,
    OutOfBoundsError,
    ShapeMismatchError,
)

pytestmark = pytest.mark.usefixtures("on_target")

HALF = ", valid_shape=[2, 1]"


def from_tile(expression: str, x: Array, *shape: int, load: str = "", fill: float = 0) -> Array:
    """Return an expression over the tile `a`, loaded from `x`, as an array of `shape`."""
    dtype = pl.FP32 if x.dtype == np.float32 else pl.INT32
    read = f"a = pl.load(x, {[0] * x.ndim}, {list(x.shape)}{load})"
    body = f"{read}\nr = {expression}\nout = pl.store(r, {[0] * len(shape)}, out)"
    return run(kernel(body, x=tensor(dtype, *x.shape), out=out(dtype, *shape)), x, fill=fill)


def test_slicing_a_tensor_is_a_view_of_it() -> None:
    function = kernel("view = pl.slice(x, [2, 2], [1, 1])\npl.write(view, [0, 0], -1.0)", x=inout(pl.FP32, 4, 4))
    x = counting(4, 4)
    launch(function, x)
    assert x[1, 1] == -1


def test_slicing_a_tile_is_a_copy_of_it() -> None:
    body = "a = pl.load(x, [0], [4])\nb = pl.slice(a, [2], [1])\npl.write(b, [0], 9.0)\nout = pl.store(a, [0], out)"
    assert run(kernel(body, x=tensor(pl.FP32, 4), out=out(pl.FP32, 4)), counting(4)).tolist() == [0, 1, 2, 3]


def test_a_slice_keeps_what_its_source_holds() -> None:
    result = from_tile("pl.slice(a, [2, 4], [1, 2])", counting(4, 8), 2, 4, load=", valid_shape=[2, 5]", fill=-1)
    assert result.tolist() == [[10, 11, 12, -1], [-1] * 4]


def test_a_slice_outside_its_source_is_refused() -> None:
    with pytest.raises(OutOfBoundsError, match="axis 1: elements 6 to 10 lie outside 0 to 8"):
        from_tile("pl.slice(a, [2, 4], [0, 6])", counting(4, 8), 2, 4)


@on_the_interpreter
def test_a_slice_outside_its_source_is_refused_when_it_runs() -> None:
    function = kernel("v = pl.slice(x, [2], [n])", x=tensor(pl.FP32, 4), n=scalar(pl.INT32))
    with pytest.raises(ExecutionError, match=r"axis 0: a slice of 2 element\(s\) at 3 does not fit 0 to 4"):
        launch(function, counting(4), 3)


def test_a_clamped_slice_of_a_tensor_holds_what_is_there() -> None:
    body = "v = pl.slice(x, [4], [n], clamp=True)\nout = pl.store(pl.load(v, [0], [4]), [0], out)"
    function = kernel(body, x=tensor(pl.FP32, 4), n=scalar(pl.INT32), out=out(pl.FP32, 4))
    assert run(function, counting(4), 3, fill=-1).tolist() == [3, -1, -1, -1]


def test_a_slice_of_a_tile_is_not_clamped() -> None:
    with pytest.raises(OperandError, match="clamp is for tensors"):
        from_tile("pl.slice(a, [2, 4], [0, 6], clamp=True)", counting(4, 8), 2, 4)


def test_a_slice_can_drop_axes_of_one() -> None:
    assert from_tile("pl.slice(a, [1, 3], [1, 0], drop_dims=[0])", counting(2, 3), 3).tolist() == [3, 4, 5]


def test_a_slice_drops_no_axis_with_elements() -> None:
    with pytest.raises(ShapeMismatchError, match=r"only axes of extent 1 can be dropped from \[2, 3\]"):
        from_tile("pl.slice(a, [2, 3], [0, 0], drop_dims=[0])", counting(2, 3), 3)


def test_a_slice_drops_no_axis_that_does_not_exist() -> None:
    with pytest.raises(ShapeMismatchError, match=r"there are no axes \(2,\)"):
        from_tile("pl.slice(a, [1, 3], [0, 0], drop_dims=[2])", counting(2, 3), 3)


def test_a_slice_needs_one_entry_per_axis() -> None:
    with pytest.raises(ShapeMismatchError, match="`valid_shape` needs one entry per axis"):
        from_tile("pl.slice(a, [1, 3], [0, 0], valid_shape=[1])", counting(2, 3), 3)


def test_reshaping_keeps_elements_in_row_major_order() -> None:
    assert from_tile("pl.reshape(a, [3, 2])", counting(2, 3), 3, 2).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_transposing_swaps_two_axes_and_their_valid_parts() -> None:
    result = from_tile("pl.transpose(a, 0, 1)", counting(2, 3), 3, 2, load=", valid_shape=[1, 3]", fill=-1)
    assert result.tolist() == [[0, -1], [1, -1], [2, -1]]


def test_transposing_a_tensor_is_a_view_of_it() -> None:
    x = counting(2, 3)
    launch(kernel("pl.write(pl.transpose(x, 0, 1), [2, 0], -1.0)", x=inout(pl.FP32, 2, 3)), x)
    assert x[0, 2] == -1


def test_transposing_an_axis_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ShapeMismatchError, match="axes 0 and 2 of a 2-D value do not exist"):
        from_tile("pl.transpose(a, 0, 2)", counting(2, 3), 3, 2)


def test_transpose_view_turns_the_last_two_axes() -> None:
    type_ = type_of(
        kernel("b = pl.tile.transpose_view(pl.load(x, [0, 0, 0], [2, 3, 4]))", x=tensor(pl.FP32, 2, 3, 4)), "b"
    )
    assert isinstance(type_, TileType) and type_.shape == (2, 4, 3)


def test_concat_puts_columns_side_by_side() -> None:
    assert from_tile("pl.concat(a, a)", counting(2, 2), 2, 4).tolist() == [[0, 1, 0, 1], [2, 3, 2, 3]]


def test_concat_needs_equal_rows() -> None:
    with pytest.raises(ShapeMismatchError, match="all axes but the last must agree"):
        from_tile("pl.concat(a, pl.slice(a, [1, 2], [0, 0]))", counting(2, 2), 2, 4)


def test_concat_leaves_a_gap_after_rows_that_are_not_whole() -> None:
    joined = "pl.slice(pl.concat(a, a), [2, 2], [0, {start}])"
    for start in (0, 2):
        result = from_tile(f"pl.set_validshape({joined.format(start=start)}, 2, 1)", counting(2, 2), 2, 2, load=HALF)
        assert result[:, 0].tolist() == [0, 2]


@pytest.mark.skipif("cuda" in TARGETS, reason="what nobody wrote is not followed there")
def test_what_lies_in_the_gap_is_not_looked_at() -> None:
    with pytest.raises(ExecutionError, match="elements that nobody wrote"):
        from_tile("pl.concat(a, a)", counting(2, 2), 2, 4, load=HALF)


def test_concat_needs_equal_element_types() -> None:
    with pytest.raises(DTypeMismatchError, match="equal element types, got fp32 and fp16"):
        kernel("y = pl.concat(x, h)", x=tensor(pl.FP32, 2), h=tensor(pl.FP16, 2))


def test_set_validshape_is_decided_by_the_running_program() -> None:
    body = "a = pl.set_validshape(pl.load(x, [0, 0], [2, 3]), n, 2)\nout = pl.store(a, [0, 0], out)"
    function = kernel(body, x=tensor(pl.FP32, 2, 3), n=scalar(pl.INT32), out=out(pl.FP32, 2, 3))
    type_ = type_of(function, "a")
    assert isinstance(type_, TileType) and type_.valid == (None, 2)
    assert run(function, counting(2, 3), 1, fill=-1).tolist() == [[0, 1, -1], [-1, -1, -1]]


def test_set_validshape_moves_no_elements() -> None:
    result = from_tile("pl.set_validshape(pl.set_validshape(a, 1, 1), 2, 2)", counting(2, 2), 2, 2)
    assert result.tolist() == [[0, 1], [2, 3]]


def test_set_validshape_larger_than_the_tile_is_refused() -> None:
    with pytest.raises(ShapeMismatchError, match="3 does not fit an axis of 2"):
        from_tile("pl.set_validshape(a, 3, 2)", counting(2, 2), 2, 2)


@on_the_interpreter
def test_set_validshape_larger_than_the_tile_is_refused_when_it_runs() -> None:
    body = "a = pl.set_validshape(pl.load(x, [0, 0], [2, 3]), n, 2)"
    with pytest.raises(ExecutionError, match=r"a valid part of \[3, 2\] does not fit \[2, 3\]"):
        launch(kernel(body, x=tensor(pl.FP32, 2, 3), n=scalar(pl.INT32)), counting(2, 3), 3)


def test_a_view_of_a_dynamic_tensor_keeps_its_symbol() -> None:
    type_ = type_of(kernel("t = pl.transpose(x, 0, 1)", x=tensor(pl.FP32, "M", 4)), "t")
    assert isinstance(type_, TensorType) and str(type_) == "tensor[4, M, fp32]"
