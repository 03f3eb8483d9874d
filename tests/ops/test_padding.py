"""Padding: values made whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ops.kernels import counting, kernel, out, run, scalar, tensor, type_of
from ops.test_shape import from_tile

import tilewright.language as pl
from tilewright.core.types import TileType
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")


@pytest.mark.parametrize(
    ("dtype", "pad", "value"),
    [
        (pl.FP32, "pl.PadValue.zero", 0),
        (pl.FP32, "pl.PadValue.max", math.inf),
        (pl.FP32, "pl.PadValue.min", -math.inf),
        (pl.BF16, 'float("-inf")', -math.inf),
        (pl.FP16, 'float("inf")', math.inf),
        (pl.INT8, "pl.PadValue.max", 127),
        (pl.INT8, "pl.PadValue.min", -128),
        (pl.UINT8, "pl.PadValue.min", 0),
        (pl.UINT64, "pl.PadValue.max", 2**64 - 1),
        (pl.INT32, "0", 0),
        (pl.FP32, "3", 3),
        (pl.BF16, "-0.5", -0.5),
        (pl.INT8, "-7", -7),
        (pl.UINT16, "65535", 65535),
        (pl.INT32, "2.0", 2),
    ],
)
def test_fillpad_writes_a_number_or_the_extreme_of_the_element_type(dtype: DataType, pad: str, value: float) -> None:
    body = f"a = pl.load(x, [0], [3], valid_shape=[1])\nout = pl.store(pl.fillpad(a, {pad}), [0], out)"
    result = run(kernel(body, x=tensor(dtype, 3), out=out(dtype, 3)), counting(3, dtype=dtype) + 1)
    assert result.tolist() == [1, value, value]


@pytest.mark.parametrize(
    ("dtype", "pad"), [(pl.FP32, "pl.PadValue.null"), (pl.INT32, "1.5"), (pl.INT8, "128"), (pl.INT8, 'float("nan")')]
)
@pytest.mark.parametrize("op", ["pl.fillpad(x, {})", "pl.fillpad_expand(x, [4], {})"])
def test_fillpad_takes_numbers_that_the_elements_can_have(op: str, dtype: DataType, pad: str) -> None:
    with pytest.raises(AttributeValueError, match="cannot be padded with"):
        kernel(f"y = {op.format(pad)}", x=tensor(dtype, 3))


def test_fillpad_takes_what_is_not_a_number() -> None:
    body = "a = pl.load(x, [0], [3], valid_shape=[2])\nout = pl.store(pl.fillpad(a, float('nan')), [0], out)"
    assert np.isnan(run(kernel(body, x=tensor(pl.FP32, 3), out=out(pl.FP32, 3)), counting(3))).tolist() == [0, 0, 1]


def test_fillpad_makes_the_whole_valid() -> None:
    body = "a = pl.fillpad(pl.load(x, [0], [3], valid_shape=[1]))"
    type_ = type_of(kernel(body, x=tensor(pl.FP32, 3)), "a")
    assert isinstance(type_, TileType) and type_.valid == (3,)


@pytest.mark.parametrize(("pad", "value"), [("zero", 0), ("max", math.inf), ("min", -math.inf)])
@pytest.mark.parametrize("kind", ["tile", "tensor"])
def test_fillpad_expand_makes_a_larger_value(kind: str, pad: str, value: float) -> None:
    load = "pl.load(x, [0, 0], [3, 5], valid_shape=[n, 4])"
    window = load if kind == "tile" else "pl.slice(x, [3, 5], [0, 0], valid_shape=[n, 4])"
    given = "r" if kind == "tile" else "pl.load(r, [0, 0], [4, 7])"
    body = f"r = pl.fillpad_expand({window}, [4, 7], pl.PadValue.{pad})\nout = pl.store({given}, [0, 0], out)"
    function = kernel(body, x=tensor(pl.FP32, 3, 5), n=scalar(pl.INDEX), out=out(pl.FP32, 4, 7))
    for rows in (2, 3, 0):
        want = np.full((4, 7), value, np.float32)
        want[:rows, :4] = counting(3, 5)[:rows, :4]
        np.testing.assert_array_equal(run(function, counting(3, 5), rows, fill=-1), want)


@pytest.mark.parametrize("dtype", [pl.INT8, pl.UINT16, pl.INT64, pl.BF16, pl.FP16])
def test_fillpad_expand_of_a_whole_tile_fills_around_it(dtype: DataType) -> None:
    body = "r = pl.fillpad_expand(pl.load(x, [0], [3]), [5], pl.PadValue.max)\nout = pl.store(r, [0], out)"
    result = run(kernel(body, x=tensor(dtype, 3), out=out(dtype, 5)), counting(3, dtype=dtype))
    assert result.tolist() == [0, 1, 2, dtype.limits[1], dtype.limits[1]]


def test_fillpad_expand_makes_no_axis_shorter() -> None:
    with pytest.raises(ShapeMismatchError, match=r"never makes an axis shorter: \[2, 3\] to \[4, 2\]"):
        from_tile("pl.fillpad_expand(a, [4, 2])", counting(2, 3), 4, 2)


def test_fillpad_inplace_fills_a_tile() -> None:
    result = from_tile("pl.tile.fillpad_inplace(a, pl.PadValue.min)", counting(2, 2), 2, 2, load=", valid_shape=[1, 2]")
    assert result.tolist() == [[0, 1], [-math.inf, -math.inf]]
