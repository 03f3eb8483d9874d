"""What people bring from NumPy, torch and Numba: natively, by the interpreter, and as NumPy has it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.errors import (
    ExecutionError,
    OperandError,
    ReassignmentError,
    ShapeMismatchError,
    UnsupportedFeatureError,
)
from tilewright.runtime import RunConfig

X: Any = np.random.default_rng(7).standard_normal((4, 6)).astype(np.float32)


def agree(kernel: Any, expected: Any, *args: Any) -> None:
    """Fail unless a kernel gives what NumPy does, natively and by the interpreter."""
    for config in (None, RunConfig(platform="interpret")):
        out = np.zeros_like(expected)
        kernel(*args, out, config=config)
        np.testing.assert_allclose(out, expected, rtol=2e-5, atol=2e-5)


def test_masks_choose_what_an_assignment_changes() -> None:
    @pl.jit
    def masked(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t, u = pl.load(x, [0, 0], [4, 6]), pl.load(x, [0, 0], [4, 6])
            t[t > 0] *= 2.0
            t[t < -0.5] = pl.exp(-t[t < -0.5])
            m = t > 1
            t[m] -= u[m] * 0.5 + 1
            pl.store(t, [0, 0], out)

    t = X.copy()
    t[t > 0] *= 2.0
    t[t < -0.5] = np.exp(-t[t < -0.5])
    m = t > 1
    t[m] -= X[m] * np.float32(0.5) + 1
    agree(masked, t, X)


def test_windows_take_what_broadcasts_into_them_and_end_with_their_axis() -> None:
    @pl.jit
    def windows(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [4, 6])
            t = t - pl.max(t, axis=1)[:, np.newaxis]
            t[1:3] = t[0]
            t[:, 0:2] = t[:, 5:6]
            pl.store(t[:, 2:100:3], [0, 0], out[:, 0:2])
            out[1:9, 2:9] = t[:3, 2:]
            out[0:1, 2:6] = t[3:, 2:9]

    t = X - X.max(axis=1)[:, np.newaxis]
    t[1:3] = t[0]
    t[:, 0:2] = t[:, 5:6]
    expected = np.zeros_like(X)
    expected[:, 0:2] = t[:, 2:100:3]
    expected[1:9, 2:9] = t[:3, 2:]
    expected[0:1, 2:6] = t[3:, 2:9]
    agree(windows, expected, X)


def test_numbers_that_run_meet_floats_and_functions() -> None:
    @pl.jit
    def numbers(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [4, 6])
            total = best = count = 0
            for i in pl.range(6):
                total += t[0, i] * i
                count += 1 if t[1, i] > 0 else 0
                if t[2, i] > best:
                    best = t[2, i]
                t = pl.where(t > i - 4, t - 2**i * 0.125, t) + i**2
            for _ in pl.range(3):
                count = count * 0.5
            scale = pl.exp(best) / pl.sqrt(pl.mean(t * t) + 1.0)  # pyright: ignore[reportArgumentType]
            sign = np.float32(1.0) if total > 0 else -1
            pl.store(t * scale * sign + total + count, [0, 0], out)

    t, total, best, count = X, 0.0, 0.0, 0.0
    for i in range(6):
        total, best, count = total + t[0, i] * i, max(best, t[2, i]), count + (t[1, i] > 0)
        t = np.where(t > i - 4, t - np.float32(2**i * 0.125), t) + np.float32(i**2)
    scale = np.exp(best) / np.sqrt(np.mean(t * t) + 1)
    agree(numbers, t * scale * np.sign(total) + np.float32(total + count * 0.125), X)


def test_the_larger_of_a_running_integer_and_a_running_float_is_a_float() -> None:
    @pl.jit
    def extremes(n: pl.Scalar[pl.INT16, pl.RUNTIME], f: pl.Scalar[pl.FP32, pl.RUNTIME], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.write(out, [0], max(n, f))
            pl.write(out, [1], min(f, n, 3.5))

    for config in (None, RunConfig(platform="interpret")):
        out = np.zeros(2, np.float32)
        extremes(7, 2.5, out, config=config)
        assert out.tolist() == [7.0, 2.5]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float16])
def test_elements_compare_with_running_numbers_of_another_kind(dtype: Any) -> None:
    @pl.jit
    def compared(
        x: pl.Tensor, f: pl.Scalar[pl.FP32, pl.RUNTIME], n: pl.Scalar[pl.INT32, pl.RUNTIME], out: pl.Out[pl.Tensor]
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [4, 6])
            pl.store((t > f) & (t <= n), [0, 0], out)

    x: Any = np.reshape(np.arange(-12, 12), (4, 6)).astype(dtype)
    for config in (None, RunConfig(platform="interpret")):
        for f, n in ((4.5, 9), (-0.5, 0), (np.inf, 3), (np.nan, 5), (-3.0, -2)):
            out = np.zeros(x.shape, np.bool_)
            compared(x, f, n, out, config=config)
            np.testing.assert_array_equal(out, (x > f) & (x <= n))


def test_sums_of_products_are_valid_where_the_products_are() -> None:
    @pl.jit
    def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.parallel(0, a.shape[0], 16):
            for j in pl.parallel(0, b.shape[1], 16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.zeros([16, 16])
                    for k in pl.range(0, a.shape[1], 4):
                        acc += pl.load(a, [i, k], [16, 4]) @ pl.load(b, [k, j], [4, 16])
                    out[i : i + 16, j : j + 16] = acc * 2.0

    agree(product, 2 * X @ X.T, X, X.T.copy())
    wide = np.tile(X, (5, 1))
    agree(product, 2 * wide @ wide.T, wide, wide.T.copy())


def test_an_output_without_a_shape_is_shown_one_that_fits() -> None:
    @pl.jit
    def outer(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0], [3])[:, None] * pl.load(y, [0], [4])[None], [0, 0], out)

    @pl.jit
    def narrower(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.parallel(0, x.shape[0], 3):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [i, 0], [3, 6])[:, 1:], [i, 0], out)

    with pytest.raises(TypeError, match=r"pl.Tensor\[\[3, 4\], pl.FP32\]"):
        outer(X[0, :3].copy(), X[0, :4].copy())
    with pytest.raises(TypeError, match=r"pl.Tensor\[\[4, 5\], pl.FP32\]"):
        narrower(X)


def test_doubles_add_up_atomically() -> None:
    @pl.jit
    def added(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
        for row in pl.parallel(4):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [row, 0], [1, 6]), [0, 0], out, atomic=pl.AtomicType.Add)

    x = X.astype(np.float64)
    agree(added, x.sum(axis=0, keepdims=True), x)


def _masked_sum(t: Any) -> None:
    t[t > 0] = t[t > 0] - pl.sum(t[t > 0])


def _column(t: Any) -> None:
    t[:, 0:2] = t[:, 5]


def _carried(t: Any) -> None:
    u = t
    for _ in pl.range(2):
        u = u + t
    for _ in pl.range(2):
        u = u + pl.cast(t, pl.FP64)


def _root(t: Any) -> None:
    for i in pl.range(3):
        t = t * 1.5**i


@pytest.mark.parametrize(
    ("mistake", "error", "help"),
    [
        (_masked_sum, OperandError, "keeps the shape"),
        (_column, ShapeMismatchError, "as large as what goes into it"),
        (_carried, ReassignmentError, "convert the new value"),
        (_root, UnsupportedFeatureError, "multiply it with itself"),
    ],
)
def test_what_would_mean_something_else_is_refused(mistake: Any, error: type[Exception], help: str) -> None:
    part = pl.inline(mistake)

    @pl.jit
    def wrong(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [4, 6])
            part(t)
            pl.store(t, [0, 0], out)

    with pytest.raises(error, match=help):
        wrong(X, np.zeros_like(X))


def test_a_kernel_with_other_tiles_keeps_its_name_in_messages() -> None:
    @pl.jit
    def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.parallel(0, a.shape[0], 16):
            for j in pl.parallel(0, b.shape[1], 16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.zeros([16, 16])
                    for k in pl.range(0, a.shape[1], 8):
                        acc += pl.load(a, [i, k], [16, 8], pad=0.0) @ pl.load(b, [k, j], [8, 16], pad=0.0)
                    pl.store(acc, [i, j], out)

    a, b = np.ones((33, 40), np.float32), np.ones((40, 34), np.float32)
    with pytest.raises(ExecutionError, match="in kernel `product`: axis"):
        product(a, b, np.zeros((33, 34), np.float32))
