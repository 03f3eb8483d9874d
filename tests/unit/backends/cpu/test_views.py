"""Views in native code: windows, turned tiles, other shapes, other valid parts."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, counting, kernel, out, scalar, tensor
from ops.native import Native, assert_same, of_bits
from unit.backends.cpu.running import native as compiled

import tilewright.language as pl
from tilewright.dtypes import STORABLE, DataType

X = tensor(pl.FP32, 6, 20)
every_type = pytest.mark.parametrize("dtype", STORABLE, ids=str)


def agree(native: Native, *args: Array | float) -> None:
    """Fail unless native code leaves what the interpreter leaves."""
    for got, want in native.run(args):
        assert_same(got, want)


def bits(dtype: DataType, *shape: int) -> Array:
    """Return elements of any type, made of random bits."""
    rng, size = np.random.default_rng(5), dtype.get_byte()
    limit = 2 if dtype == pl.BOOL else 1 << 8 * size
    return of_bits(rng.integers(0, limit - 1, shape, f"uint{8 * size}", endpoint=True), dtype)


@every_type
def test_elements_of_any_type_pass_through_unchanged(dtype: DataType) -> None:
    native = Native(
        kernel(
            """
            t = pl.load(x, [0, 0], [6, 20])
            w = pl.slice(t, [4, 9], [1, 3])
            turned = pl.transpose(w, 0, 1)
            flat = pl.reshape(turned, [36])
            both = pl.concat(w, pl.slice(t, [4, 7], [2, 13]))
            out = pl.store(pl.reshape(flat, [9, 4]), [0, 0], out)
            joined = pl.store(both, [0, 0], joined)
            x = pl.store(pl.transpose(pl.slice(t, [5, 6], [1, 3]), 0, 1), [0, 2], x)
            swapped = pl.store(pl.transpose(pl.load(x, [0, 0], [6, 20]), 0, 1), [0, 0], swapped)
            """,
            x=tensor(dtype, 6, 20),
            out=out(dtype, 9, 4),
            joined=out(dtype, 4, 16),
            swapped=out(dtype, 20, 6),
        )
    )
    blank = [np.zeros(shape, dtype.numpy) for shape in ((9, 4), (4, 16), (20, 6))]
    agree(native, bits(dtype, 6, 20), *blank)


SLICES = [
    "pl.slice(t, [3, 7], [2, 5])",
    "pl.slice(t, [3, 7], [i, j])",
    "pl.slice(t, [3, 7], [i, j], valid_shape=[2, 6])",
    "pl.slice(t, [3, 7], [i, j], valid_shape=[i, j])",
    "pl.slice(pl.slice(t, [7, 12], [1, j]), [3, 7], [i, 2])",
    "pl.slice(pl.set_validshape(t, 4, 9), [3, 7], [i, j])",
    "pl.slice(pl.set_validshape(t, i, j), [3, 7], [1, 2])",
    "pl.slice(pl.set_validshape(t, i, j), [3, 7], [3, 8])",
    "pl.set_validshape(pl.slice(t, [3, 7], [1, 1]), i, j)",
    "pl.set_validshape(pl.set_validshape(pl.slice(t, [3, 7], [1, 1]), i, j), 3, 7)",
    "pl.set_validshape(pl.slice(t, [3, 7], [1, 1]), 0, 7)",
    "pl.transpose(pl.slice(t, [7, 3], [i - 2, j]), 0, 1)",
]
BODY = """
t = pl.load(x, [0, 0], [{rows}, 20])
w = {window}
out = pl.store(w, [0, 0], out)
more = pl.store(pl.add(pl.exp(pl.muls(w, 0.01)), w), [0, 0], more)
sums = pl.store(pl.row_sum(w), [0, 0], sums)
"""


@pytest.mark.parametrize("window", SLICES)
def test_a_window_is_what_the_interpreter_sees(window: str) -> None:
    rows = 8
    native = Native(
        kernel(
            BODY.format(rows=rows, window=window),
            x=tensor(pl.FP32, rows, 20),
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            out=out(pl.FP32, 3, 7),
            more=out(pl.FP32, 3, 7),
            sums=out(pl.FP32, 3, 1),
        )  # fmt: skip
    )
    for i, j in ((2, 3), (3, 6), (2, 0)):
        args = [counting(rows, 20), i, j, *(np.full(s, 7, np.float32) for s in ((3, 7), (3, 7), (3, 1)))]
        for got, want in native.run(args):
            assert_same(got, want, ulp=4)


def test_an_axis_is_dropped() -> None:
    native = Native(
        kernel(
            """
            t = pl.load(x, [0, 0, 0], [3, 4, 20])
            w = pl.slice(t, [1, 4, 9], [i, 0, 2], drop_dims=[0])
            row = pl.slice(t, [1, 1, 20], [i, 1, 0], drop_dims=[0, 1])
            out = pl.store(w, [0, 0], out)
            line = pl.store(pl.neg(row), [0], line)
            """,
            x=tensor(pl.FP32, 3, 4, 20),
            i=scalar(pl.INDEX),
            out=out(pl.FP32, 4, 9),
            line=out(pl.FP32, 20),
        )  # fmt: skip
    )
    for i in (0, 2):
        agree(native, counting(3, 4, 20), i, np.zeros((4, 9), np.float32), np.zeros(20, np.float32))


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (0, 2), (-1, -3)], ids=str)
def test_any_two_axes_are_swapped(axes: tuple[int, int]) -> None:
    shape = [3, 4, 18]
    shape[axes[0]], shape[axes[1]] = shape[axes[1]], shape[axes[0]]
    native = Native(
        kernel(
            f"""
            t = pl.load(x, [0, 0, 0], [3, 4, 18], valid_shape=[2, i, 17])
            w = pl.transpose(t, {axes[0]}, {axes[1]})
            out = pl.store(w, [0, 0, 0], out)
            more = pl.store(pl.neg(w), [0, 0, 0], more)
            most = pl.store(pl.row_max(w), [0, 0, 0], most)
            cols = pl.store(pl.col_max(w), [0, 0, 0], cols)
            """,
            x=tensor(pl.FP32, 3, 4, 18),
            i=scalar(pl.INDEX),
            out=out(pl.FP32, *shape),
            more=out(pl.FP32, *shape),
            most=out(pl.FP32, *shape[:2], 1),
            cols=out(pl.FP32, shape[0], 1, shape[2]),
        )  # fmt: skip
    )
    blank = [np.full(s, 7, np.float32) for s in (shape, shape, (*shape[:2], 1), (shape[0], 1, shape[2]))]
    agree(native, counting(3, 4, 18), 3, *blank)


def test_a_window_that_does_not_fit_is_an_error() -> None:
    native = Native(
        kernel(
            "t = pl.load(x, [0, 0], [6, 20])\nout = pl.store(pl.slice(t, [3, 7], [i, j]), [0, 0], out)",
            x=X,
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            out=out(pl.FP32, 3, 7),
        )  # fmt: skip
    )
    for i, j in ((4, 0), (-1, 0), (0, 14), (1 << 40, 1 << 40)):
        found, expected = native.errors([counting(6, 20), i, j, np.zeros((3, 7), np.float32)])
        assert found is not None and expected is not None and "does not fit" in found.message


def test_a_valid_part_that_does_not_fit_is_an_error() -> None:
    native = Native(
        kernel(
            "t = pl.set_validshape(pl.load(x, [0, 0], [6, 20]), i, j)\nout = pl.store(pl.neg(t), [0, 0], out)",
            x=X,
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            out=out(pl.FP32, 6, 20),
        )  # fmt: skip
    )
    for i, j in ((7, 0), (-1, 0), (0, 21)):
        found, expected = native.errors([counting(6, 20), i, j, np.zeros((6, 20), np.float32)])
        assert found is not None and expected is not None and "does not fit" in found.message


def test_reshaping_what_is_partly_valid_is_an_error() -> None:
    native = Native(
        kernel(
            "t = pl.load(x, [i, 0], [6, 20])\nout = pl.store(pl.reshape(t, [10, 12]), [0, 0], out)",
            x=X,
            i=scalar(pl.INDEX),
            out=out(pl.FP32, 10, 12),
        )  # fmt: skip
    )
    agree(native, counting(6, 20), 0, np.zeros((10, 12), np.float32))
    found, expected = native.errors([counting(6, 20), 2, np.zeros((10, 12), np.float32)])
    assert found is not None and expected is not None and "wholly valid" in found.message


@pl.jit
def every_other(x: pl.Tensor, out: pl.Out[pl.Tensor], step: int):
    y = x[:, ::step]
    for row in pl.parallel(0, y.shape[0], 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(y, [row, 0], [4, y.shape[1]]) * 2.0, [row, 0], out)


@pytest.mark.parametrize("step", [2, 3, 9])
def test_columns_apart_are_picked_out_of_what_lies_between_them(step: int) -> None:
    x = np.random.default_rng(step).standard_normal((8, 1152), np.float32)
    taken = x[:, ::step]
    result = np.zeros_like(taken)
    every_other(x, result, step=step)
    np.testing.assert_array_equal(result, taken * 2)
    assert ("gather" in every_other.compile(x, result, step=step).stages["llvm"]) == (step == 9)


@pytest.mark.parametrize("columns", [64, 75])
@pytest.mark.parametrize("step", [2, 3, 8])
@pytest.mark.parametrize("dtype", ["FP32", "INT64", "FP16"])
def test_what_is_stored_to_every_other_column_leaves_those_between_alone(dtype: str, step: int, columns: int) -> None:
    wide = columns * step
    text = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[9, {columns}], pl.{dtype}], out: pl.InOut[pl.Tensor[[9, {wide}], pl.{dtype}]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:, {step - 1}::{step}] = x[:, :]
            out[2:5, ::{step}] = x[3:6, :] + x[2:5, :]
"""
    random = np.random.default_rng(step)
    kind = {"FP32": np.float32, "INT64": np.int64, "FP16": np.float16}[dtype]
    x, written = (random.integers(-9, 9, (9, n)).astype(kind) for n in (columns, wide))
    compiled(text).check(x, written)
