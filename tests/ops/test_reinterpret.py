"""Reinterpretation: bytes as elements of another type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ops.kernels import Array, inout, kernel, launch, out, run, run_all, scalar, tensor

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import DTypeMismatchError, ExecutionError, NotStaticError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")

TYPES = [pl.INT8, pl.UINT8, pl.INT16, pl.UINT16, pl.INT32, pl.UINT32, pl.INT64, pl.UINT64, pl.FP16, pl.BF16, pl.FP32]


def some(dtype: DataType, *shape: int) -> Array:
    """Return elements whose bytes are all different from each other, and are numbers in every type."""
    count = int(np.prod(shape)) * dtype.get_byte()
    values = (np.arange(count) * 37 + 1) % 113
    return np.reshape(seen(values.astype(np.uint8), dtype.numpy), shape)


def seen(array: Array, dtype: Any) -> Array:
    """Return the bytes of an array as other elements."""
    packed: Any = np.ascontiguousarray(array)
    return packed.view(dtype)


def bits(array: Array) -> Array:
    return seen(array, np.uint8)


@pytest.mark.parametrize("source", TYPES, ids=str)
@pytest.mark.parametrize("kind", ["tile", "tensor"])
def test_the_bytes_are_the_same(source: DataType, kind: str) -> None:
    x, outputs = some(source, 3, 16), dict[str, str]()
    lines = ["t = pl.load(x, [0, 0], [3, 16])"]
    for other in (other for other in TYPES if other != source):
        shape = (3, 16 * source.get_byte() // other.get_byte())
        view, name = f"v_{other}", f"out_{other}"
        given = view if kind == "tile" else f"pl.load({view}, [0, 0], {list(shape)})"
        lines.append(f"{view} = pl.reinterpret_view({'t' if kind == 'tile' else 'x'}, pl.{other.symbol})")
        lines.append(f"{name} = pl.store({given}, [0, 0], {name})")
        outputs[name] = out(other, *shape)
    found = run_all(kernel("\n".join(lines), x=tensor(source, 3, 16), **outputs), x)
    for name, result in zip(outputs, found, strict=True):
        np.testing.assert_array_equal(bits(result), bits(x), name)


@pytest.mark.parametrize("kind", ["tile", "tensor"])
@pytest.mark.parametrize(("source", "other", "columns"), [(pl.FP32, pl.INT16, 10), (pl.INT16, pl.FP32, 3)], ids=str)
def test_the_valid_part_of_rows_is_counted_in_the_new_elements(
    kind: str, source: DataType, other: DataType, columns: int
) -> None:
    x, wide = some(source, 4, 8), 8 * source.get_byte() // other.get_byte()
    part = "x, [0, 0], [4, 8], valid_shape=[n, m]" if kind == "tile" else "x, [4, 8], [0, 0], valid_shape=[n, m]"
    window = f"pl.{'load' if kind == 'tile' else 'slice'}({part})"
    given = "v" if kind == "tile" else f"pl.load(v, [0, 0], [4, {wide}], clamp=True)"
    body = f"v = pl.reinterpret_view({window}, pl.{other.symbol})\nout = pl.store({given}, [0, 0], out)"
    numbers = {"n": scalar(pl.INDEX), "m": scalar(pl.INDEX)}
    function = kernel(body, x=tensor(source, 4, 8), **numbers, out=out(other, 4, wide))
    for n in (3, 4, 0):
        m = columns * other.get_byte() // source.get_byte()
        result = run(function, x, n, m, fill=7)
        want = np.full((4, wide), 7, other.numpy)
        want[:n, :columns] = seen(x[:n, :m], other.numpy) if n else 0
        np.testing.assert_array_equal(bits(result), bits(want))


def test_a_part_that_is_no_whole_number_of_elements_is_refused() -> None:
    part = "pl.load(x, [0, 0], [4, 8], valid_shape=[4, 3])"
    with pytest.raises(ShapeMismatchError, match="3 int16 elements along axis -1 are no whole number of fp32 ones"):
        kernel(f"v = pl.reinterpret_view({part}, pl.FP32)", x=tensor(pl.INT16, 4, 8))


def test_a_part_that_is_no_whole_number_of_elements_is_refused_when_it_runs() -> None:
    part = "pl.load(x, [0, 0], [4, 8], valid_shape=[4, n])"
    body = f"v = pl.reinterpret_view({part}, pl.FP32)\nout = pl.store(v, [0, 0], out)"
    function = kernel(body, x=tensor(pl.INT16, 4, 8), n=scalar(pl.INDEX), out=out(pl.FP32, 4, 4))
    with pytest.raises(ExecutionError, match="no whole number"):
        run(function, some(pl.INT16, 4, 8), 3)


@pytest.mark.parametrize("kind", ["tile", "tensor"])
def test_a_shape_of_its_own(kind: str) -> None:
    x = some(pl.FP32, 4, 6)
    data = "pl.load(x, [0, 0], [4, 6])" if kind == "tile" else "x"
    given = "v" if kind == "tile" else "pl.load(v, [0, 0], [6, 8])"
    body = f"v = pl.reinterpret_view({data}, pl.BF16, shape=[6, 8])\nout = pl.store({given}, [0, 0], out)"
    result = run(kernel(body, x=tensor(pl.FP32, 4, 6), out=out(pl.BF16, 6, 8)), x)
    np.testing.assert_array_equal(bits(result), np.reshape(bits(x), (6, 16)))


def test_a_column_is_longer_or_shorter() -> None:
    x = some(pl.INT16, 6, 1)
    body = "v = pl.reinterpret_view(pl.load(x, [0, 0], [6, 1]), pl.INT32)\nout = pl.store(v, [0, 0], out)"
    result = run(kernel(body, x=tensor(pl.INT16, 6, 1), out=out(pl.INT32, 3, 1)), x)
    np.testing.assert_array_equal(result, np.reshape(seen(np.reshape(x, -1), np.int32), (3, 1)))


def test_writing_a_view_writes_its_tensor() -> None:
    x = np.zeros((2, 2), np.float32)
    launch(kernel("pl.write(pl.reinterpret_view(x, pl.INT16), [1, 3], 16256)", x=inout(pl.FP32, 2, 2)), x)
    assert x.tolist() == [[0, 0], [0, 1]]


def test_rows_of_a_window_stay_where_they_are() -> None:
    x = some(pl.FP32, 4, 6)
    window = "pl.slice(x, [3, 4], [1, 2])"
    body = f"v = pl.reinterpret_view({window}, pl.UINT8)\nout = pl.store(pl.load(v, [0, 0], [3, 16]), [0, 0], out)"
    result = run(kernel(body, x=tensor(pl.FP32, 4, 6), out=out(pl.UINT8, 3, 16)), x)
    np.testing.assert_array_equal(result, bits(x[1:, 2:]))


@pytest.mark.parametrize("window", ["pl.transpose(x, 0, 1)", "pl.slice(pl.transpose(x, 0, 1), [6, 2], [0, n])"])
def test_bytes_that_lie_apart_are_refused_when_it_runs(window: str) -> None:
    body = f"v = pl.reinterpret_view({window}, pl.UINT8)\nout = pl.store(pl.load(v, [0, 0], [2, 4]), [0, 0], out)"
    function = kernel(body, x=tensor(pl.FP32, 4, 6), n=scalar(pl.INDEX), out=out(pl.UINT8, 2, 4))
    with pytest.raises(ExecutionError, match="strided"):
        run(function, some(pl.FP32, 4, 6), 1)


def test_rows_a_part_of_an_element_apart_are_refused_when_it_runs() -> None:
    window = "pl.slice(x, [3, 4], [0, 0])"
    body = f"v = pl.reinterpret_view({window}, pl.FP32)\nout = pl.store(pl.load(v, [0, 0], [3, 2]), [0, 0], out)"
    function = kernel(body, x=tensor(pl.INT16, 3, 5), out=out(pl.FP32, 3, 2))
    with pytest.raises(ExecutionError, match="no whole number|strided"):
        run(function, some(pl.INT16, 3, 5))


def test_infinities_and_nan_are_bits_like_others() -> None:
    x = np.array([[np.inf, -np.inf, np.nan, -0.0]], np.float32)
    body = "v = pl.reinterpret_view(pl.load(x, [0, 0], [1, 4]), pl.BF16)\nout = pl.store(v, [0, 0], out)"
    result = run(kernel(body, x=tensor(pl.FP32, 1, 4), out=out(pl.BF16, 1, 8)), x)
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(bits(result), bits(x))


@pytest.mark.parametrize(
    ("data", "given", "error", "message"),
    [
        ("x", "pl.FP32", DTypeMismatchError, "cannot be seen as fp32"),
        ("x", "pl.BOOL", DTypeMismatchError, "bool elements are not supported"),
        ("x", "pl.FP8E5M2", DTypeMismatchError, "fp8e5m2 elements are not supported"),
        ("x", "pl.INT64", ShapeMismatchError, "no whole number of int64 ones"),
        ("x", "pl.INT32, shape=[4, 4]", ShapeMismatchError, "different numbers of bytes"),
        ("x", "pl.INT32, shape=[-3, -5]", ShapeMismatchError, "must be positive"),
        ("x", "pl.INT32, shape=[n, 5]", NotStaticError, "must be static"),
        ("pl.slice(x, [3, n], [0, 0])", "pl.INT64", NotStaticError, "axis -1 must be static"),
        ("pl.set_validshape(x, 2, 5)", "pl.INT16, shape=[30]", ShapeMismatchError, "only a wholly valid value"),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_otherwise(data: str, given: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel(f"v = pl.reinterpret_view({data}, {given})", x=tensor(pl.FP32, 3, 5), n=scalar(pl.INDEX))
