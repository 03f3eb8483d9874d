"""The texts of kernels for a GPU, whole: what changes in them is read in review."""

from __future__ import annotations

import numpy as np
from conftest import Golden
from unit.backends.cuda.written import kernel_text, written

import tilewright.language as pl

M, N = pl.dynamic("M"), pl.dynamic("N")


def ones(*shape: int, dtype: str = "float32") -> np.ndarray:  # pyright: ignore
    return np.ones(shape, dtype)


@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [16, 128]) + pl.load(y, [row, 0], [16, 128]), [row, 0], out)
    return out


def test_whole_tiles_need_no_masks(golden: Golden) -> None:
    text = kernel_text(add, ones(64, 128), ones(64, 128))
    assert "cmpi" not in text
    golden("cuda/add.ttir", text)


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 2):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [2, 100])
            e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
            pl.store(pl.row_expand_div(e, pl.row_sum(e)), [row, 0], out)
    return out


def test_tiles_that_are_no_powers_of_two_are_padded_and_masked(golden: Golden) -> None:
    golden("cuda/softmax.ttir", kernel_text(softmax, ones(8, 100)))


@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, 128, 64):
        for j in pl.parallel(0, 256, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([64, 64], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, 96, 32):
                    acc = pl.matmul_acc(acc, pl.load(a, [i, k], [64, 32]), pl.load(b, [k, j], [32, 64]))
                pl.store(acc, [i, j], out)
    return out


def test_a_product_is_accumulated_around_a_loop(golden: Golden) -> None:
    golden("cuda/matmul.ttir", kernel_text(matmul, ones(128, 96), ones(96, 256), ones(128, 256)))


@pl.jit
def relu(x: pl.Tensor[[M, N], pl.BF16], out: pl.Out[pl.Tensor[[M, N], pl.BF16]]):
    for row in pl.parallel(0, x.shape[0], 8):
        for column in pl.parallel(0, x.shape[1], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.relu(pl.load(x, [row, column], [8, 64])), [row, column], out)
    return out


def test_dynamic_extents_are_parameters_and_loads_are_checked(golden: Golden) -> None:
    import ml_dtypes

    golden("cuda/relu.ttir", kernel_text(relu, np.ones((40, 100), ml_dtypes.bfloat16)))


def test_equal_kernels_are_written_once() -> None:
    @pl.jit
    def twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for _ in pl.range(2):
            for row in pl.parallel(0, 64, 16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.load(x, [row, 0], [16, 128]) + 1.0, [row, 0], out)
        return out

    assert len(written(twice.specialize(ones(64, 128)).program).kernels) == 1


def test_a_barrier_orders_what_threads_do_to_one_tensor() -> None:
    @pl.jit
    def shift(x: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [8, 64]) + 1.0, [8, 0], x)
            pl.store(pl.load(x, [8, 0], [8, 64]), [0, 0], out)
        return out

    text = kernel_text(shift, ones(16, 64), ones(8, 64))
    order = [word for line in text.splitlines() for word in ("tt.load", "tt.store", "gpu.barrier") if word in line]
    assert order == ["tt.load", "gpu.barrier", "tt.store", "gpu.barrier", "tt.load", "tt.store"]


def test_every_operation_says_which_line_it_is_for() -> None:
    (kernel,) = written(add.specialize(ones(64, 128), ones(64, 128)).program).kernels
    lines = [line for line in kernel.aligned.splitlines() if " = tt." in line]
    assert lines and all(f'loc("{__file__}":' in line for line in lines)


@pl.jit
def turned(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        left, right = pl.load(a, [0, 0], [64, 64]), pl.load(pl.transpose(b, 0, 1), [0, 0], [64, 64])
        pl.store(pl.matmul(left, right), [0, 0], out)
    return out


def test_views_are_not_loaded_by_the_descriptor_of_what_they_are_views_of() -> None:
    import ml_dtypes

    factor = np.ones((64, 64), ml_dtypes.bfloat16)
    (kernel,) = written(turned.specialize(factor, factor, ones(64, 64)).program).kernels
    assert kernel.described.count("tt.descriptor_load") == 1


@pl.jit
def shown(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [16, 128])
            pl.print("row", row, t)
            pl.store(t, [row, 0], out)
    return out


def test_what_is_printed_is_written_down_where_there_is_room(golden: Golden) -> None:
    golden("cuda/print.ttir", kernel_text(shown, ones(64, 128)))
