"""Dot products: few rows meet weights that lie output by output as they lie, however their transpose is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright.language as pl
from tilewright import ir
from tilewright.backends.cpu.backend import CPU
from tilewright.native.target import Target, by_name, host, missing_features
from tilewright.runtime import RunConfig

M = pl.dynamic("M")


@pl.jit
def of_a_tile(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, x.shape[0], 16):
        for j in pl.parallel(0, w.shape[0], 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.zeros([16, 8], dtype=pl.FP32)
                for k in pl.range(0, x.shape[1], 24):
                    acc += pl.load(x, [i, k], [16, 24]) @ pl.load(w, [j, k], [8, 24]).T
                pl.store(acc, [i, j], out)


@pl.jit
def of_a_tensor(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    turned = w.T
    for i in pl.parallel(0, x.shape[0], 16):
        for j in pl.parallel(0, w.shape[0], 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.zeros([16, 8], dtype=pl.FP32)
                for k in pl.range(0, x.shape[1], 24):
                    acc += pl.load(x, [i, k], [16, 24]) @ pl.load(turned, [k, j], [24, 8])
                pl.store(acc, [i, j], out)


@pl.jit
def of_whole_tensors(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.cast(pl.matmul(x, w, b_trans=True), pl.FP32)


@pl.jit
def of_rows_told_by_calls(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    x.bind_dynamic(0, M)
    out.bind_dynamic(0, M)
    for i in pl.parallel(0, x.shape[0], 16):
        for j in pl.parallel(0, w.shape[0], 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.zeros([16, 8], dtype=pl.FP32)
                for k in pl.range(0, x.shape[1], 24):
                    acc += pl.load(x, [i, k], [16, 24]) @ pl.load(w, [j, k], [8, 24]).T
                pl.store(acc, [i, j], out)


@pl.jit
def of_three_rows_or_fewer(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    x.bind_dynamic(0, M)
    out.bind_dynamic(0, M)
    for i in pl.parallel(0, x.shape[0], 3):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.zeros([3, 8], dtype=pl.FP32)
            for k in pl.range(0, x.shape[1], 24):
                if k != 240:
                    acc += pl.load(x, [i, k], [3, 24]) @ pl.load(w, [0, k], [8, 24]).T
            pl.store(acc, [i, 0], out)


@pytest.mark.parametrize("rows", range(1, 8))
def test_tiles_of_three_rows_add_each_once(rows: int) -> None:
    multiplied(of_three_rows_or_fewer, rows, 67, 8, np.float32)


KERNELS = (of_a_tile, of_a_tensor, of_whole_tensors, of_rows_told_by_calls)


def multiplied(kernel: Callable[..., object], rows: int, depth: int, outputs: int, dtype: Any) -> None:
    """Fail unless a kernel gives what the transpose multiplied in doubles is."""
    draw = np.random.default_rng(rows)
    x: NDArray[Any] = draw.uniform(-1, 1, (rows, depth)).astype(dtype)
    w: NDArray[Any] = draw.uniform(-1, 1, (outputs, depth)).astype(dtype)
    out: NDArray[np.float32] = np.full((rows, outputs), 9, np.float32)
    kernel(x, w, out)
    expected = np.einsum("mk,nk->mn", x.astype(np.float64), w.astype(np.float64))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rows", [1, 3, 8, 13, 16, 17])
def test_products_of_few_rows_with_weights_that_lie_by_outputs(kernel: Any, rows: int) -> None:
    multiplied(kernel, rows, 131, 38, np.float32)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("rows", "depth"), [(1, 131), (8, 131), (16, 132), (24, 131), (24, 144)])
def test_halves_are_multiplied_as_floats(dtype: Any, rows: int, depth: int) -> None:
    multiplied(of_a_tile, rows, depth, 70, dtype)


@pl.jit
def of_one_output(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) @ pl.load(w, [0, 0], w.shape).T, [0, 0], out)


@pytest.mark.parametrize("depth", [13, 16])
def test_one_output_is_a_column_by_itself(depth: int) -> None:
    multiplied(of_one_output, 24, depth, 1, ml_dtypes.bfloat16)


def test_words_of_weights_are_turned_as_they_lie() -> None:
    x, w, out = (np.zeros(shape, dtype) for shape, dtype in (((32, 256), "i1"), ((64, 256), "i1"), ((32, 64), "i4")))
    text = of_bytes.compile(x, w, out).stages["llvm"]
    assert "@words_of_4" not in text or not host().has("avx512vnni")


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_narrow_vectors_add_up_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = by_name(name)
    if missing_features(target):
        pytest.skip(f"this processor runs no code for {name}")

    def chosen(_: CPU) -> Target:
        return target

    monkeypatch.setattr(CPU, "target", chosen)
    for rows in (1, 7, 16):
        shapes = (rows, 67), (38, 67), (rows, 38)
        program = of_a_tile.specialize(*(np.zeros(shape, np.float32) for shape in shapes)).program
        multiplied(ir.compile(program), rows, 67, 38, np.float32)


@pytest.mark.parametrize("kernel", [of_a_tile, of_a_tensor, of_whole_tensors])
def test_weights_are_not_packed(kernel: Any) -> None:
    x, w, out = (np.zeros(shape, np.float32) for shape in ((4, 512), (256, 512), (4, 256)))
    assert "@pack" not in kernel.compile(x, w, out).stages["llvm"]


@pl.jit
def of_quotients(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        right = 1.0 / pl.load(w, [0, 0], w.shape)
        pl.store(pl.load(x, [0, 0], x.shape) @ right.T, [0, 0], out)


def test_what_is_made_of_no_elements_adds_nothing() -> None:
    x, w, out = np.ones((2, 21), np.float32), np.full((5, 21), 0.5, np.float32), np.zeros((2, 5), np.float32)
    of_quotients(x, w, out)
    assert (out == 42).all()


@pl.jit
def of_bytes(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    for j in pl.parallel(0, w.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.matmul(pl.load(x, [0, 0], [x.shape[0], 32]), pl.load(w, [j, 0], [8, 32]).T)
            for k in pl.range(32, x.shape[1], 32):
                acc = pl.matmul_acc(acc, pl.load(x, [0, k], [x.shape[0], 32]), pl.load(w, [j, k], [8, 32]).T)
            pl.store(acc, [0, j], out)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize(("rows", "depth", "outputs"), [(5, 173, 27), (24, 172, 27), (24, 173, 130), (33, 256, 130)])
def test_integers_are_added_up_exactly(dtype: Any, rows: int, depth: int, outputs: int) -> None:
    draw, limits = np.random.default_rng(0), np.iinfo(dtype)
    x, w = (draw.integers(limits.min, limits.max, (n, depth), dtype, endpoint=True) for n in (rows, outputs))
    out, expected = np.zeros((rows, outputs), np.int32), np.zeros((rows, outputs), np.int32)
    of_bytes(x, w, out)
    of_bytes(x, w, expected, config=RunConfig(platform="interpret"))
    np.testing.assert_array_equal(out, expected)
