"""Products that loops add up, as PTO text: they stay in the accumulator, and are rounded as the program's are."""
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from property.exported import extents_of, run_exported

import tilewright.language as pl
from tilewright.runtime import RunConfig

M = pl.dynamic("M")
K = pl.dynamic("K")
N = pl.dynamic("N")
A = pl.Tensor[[M, K], pl.FP32]
B = pl.Tensor[[K, N], pl.FP32]
C = pl.Tensor[[M, N], pl.FP32]
INTERPRETED = RunConfig(platform="interpret")


@pl.jit
def begun(a: A, b: B, c: pl.Out[C]):
    for i in pl.parallel(0, M, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.matmul(pl.load(a, [i, 0], [32, 64]), pl.load(b, [0, 0], [64, 32]))
            for k in pl.range(64, K, 64):
                acc = pl.matmul_acc(acc, pl.load(a, [i, k], [32, 64]), pl.load(b, [k, 0], [64, 32]))
            pl.store(acc, [i, 0], c)


@pl.jit
def from_zeros(a: A, b: B, c: pl.Out[C]):
    for i in pl.parallel(0, M, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.zeros([32, 32], pl.FP32)
            for k in pl.range(0, K, 64):
                acc = pl.matmul_acc(acc, pl.load(a, [i, k], [32, 64]), pl.load(b, [k, 0], [64, 32]))
            pl.store(acc, [i, 0], c)


@pl.jit
def seen_twice(a: A, b: B, c: pl.Out[C]):
    for i in pl.parallel(0, M, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            first = pl.matmul(pl.load(a, [i, 0], [32, 64]), pl.load(b, [0, 0], [64, 32]))
            acc = first
            for k in pl.range(64, K, 64):
                acc = pl.matmul_acc(acc, pl.load(a, [i, k], [32, 64]), pl.load(b, [k, 0], [64, 32]))
            pl.store(pl.add(acc, first), [i, 0], c)


@pl.jit
def begun_again(a: A, b: B, c: pl.Out[C]):
    for i in pl.parallel(0, M, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.matmul(pl.load(a, [i, 0], [32, 64]), pl.load(b, [0, 0], [64, 32]))
            for k in pl.range(64, K, 64):
                a_k, b_k = pl.load(a, [i, k], [32, 64]), pl.load(b, [k, 0], [64, 32])
                acc = pl.matmul_acc(acc, a_k, b_k, init_cond=k == 128)
            pl.store(acc, [i, 0], c)


@pl.jit
def begun_again_elsewhere(a: A, b: B, c: pl.Out[C]):
    for i in pl.parallel(0, M, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.tile_full([32, 32], pl.FP32, 1.0)
            for k in pl.range(0, K, 64):
                a_k, b_k = pl.load(a, [i, k], [32, 64]), pl.load(b, [k, 0], [64, 32])
                acc = pl.matmul_acc(acc, a_k, b_k, init_cond=k == 128)
            pl.store(acc, [i, 0], c)


@pl.jit
def gone_on(
    a: pl.Tensor[[32, 192], pl.FP32], b: pl.Tensor[[192, 32], pl.FP32], c: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.zeros([32, 32], pl.FP32)
        for k in pl.range(0, 192, 64):
            acc = pl.matmul_acc(acc, pl.load(a, [0, k], [32, 64]), pl.load(b, [k, 0], [64, 32]))
        more = pl.matmul_acc(acc, pl.load(a, [0, 64], [32, 64]), pl.load(b, [64, 0], [64, 32]))
        pl.store(more - acc, [0, 0], c)


def both(kernel: Any, a: Any, b: Any, platform: str = "interpret") -> tuple[Any, Any, str]:
    """Return what a kernel and its PTO text compute, and the text."""
    wanted, found = (np.full((len(a), b.shape[1]), 7, np.float32) for _ in range(2))
    kernel(a, b, wanted, config=RunConfig(platform=platform))
    program = kernel.compile(a, b, found)
    entry, text = program.source.entries[-1], program.as_pto()
    run_exported(text, entry.name, [a, b, found], extents_of(entry, [a, b, found]), platform)
    return found, wanted, text


def factors(k: int, rows: int = 40, cols: int = 24) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    return rng.standard_normal((rows, k), dtype=np.float32), rng.standard_normal((k, cols), dtype=np.float32)


@pytest.mark.parametrize("kernel", [begun, from_zeros], ids=["begun", "from_zeros"])
@pytest.mark.parametrize("k", [64, 192, 200])
def test_sums_of_products_are_rounded_once_a_turn(kernel: Any, k: int) -> None:
    found, wanted, text = both(kernel, *factors(k))
    np.testing.assert_array_equal(found, wanted)
    assert "pto.tmatmul.acc" in text and "pto.tadd" not in text


def test_what_is_added_behind_a_loop_leaves_its_sum_alone() -> None:
    a, b = factors(192, 32, 32)
    found, wanted, text = both(gone_on, a, b)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(found, a[:, 64:128] @ b[64:128], atol=1e-4)
    assert text.count("pto.tmatmul.acc") == 2


def test_a_sum_without_turns_is_the_zeros_it_begins_with() -> None:
    found, wanted, _ = both(from_zeros, *factors(0, 32, 32))
    assert not found.any() and not wanted.any()


def test_what_somebody_else_reads_is_not_added_to() -> None:
    found, wanted, text = both(seen_twice, *factors(192))
    assert "pto.tmatmul.acc" not in text
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2 * np.spacing(np.abs(wanted).max()))


@pytest.mark.parametrize("kernel", [begun_again, begun_again_elsewhere], ids=["here", "elsewhere"])
def test_a_sum_begins_again_where_it_is_told_to(kernel: Any) -> None:
    a, b = factors(256)
    found, wanted, _ = both(kernel, a, b)
    np.testing.assert_allclose(wanted, a[:, 128:] @ b[128:], atol=1e-4)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2 * np.spacing(np.abs(wanted).max()))


@pytest.mark.parametrize("kernel", [begun, from_zeros], ids=["begun", "from_zeros"])
def test_natively_they_are_as_near(kernel: Any) -> None:
    a, b = factors(256)
    found, wanted, _ = both(kernel, a, b, "cpu")
    bound = 256 * np.spacing(np.float32(1)) * (np.abs(a) @ np.abs(b))
    assert (np.abs(found - wanted) <= bound).all()


@pl.jit
def bytes_added(
    a: pl.Tensor[[32, 128], pl.INT8], b: pl.Tensor[[128, 32], pl.INT8], c: pl.Out[pl.Tensor[[32, 32], pl.INT32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.zeros([32, 32], pl.INT32)
        for k in pl.range(0, 128, 64):
            acc = pl.matmul_acc(acc, pl.load(a, [0, k], [32, 64]), pl.load(b, [k, 0], [64, 32]))
        pl.store(acc, [0, 0], c)


@pl.jit
def narrow_added(
    a: pl.Tensor[[16, 128], pl.BF16], b: pl.Tensor[[128, 16], pl.BF16], c: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.zeros([16, 16], pl.FP32)
        for k in pl.range(0, 128, 64):
            acc = pl.matmul_acc(acc, pl.load(a, [0, k], [16, 64]), pl.load(b, [k, 0], [64, 16]))
        pl.store(acc, [0, 0], c)


@pytest.mark.parametrize(
    ("kernel", "dtype", "sums"), [(bytes_added, np.int8, np.int32), (narrow_added, ml_dtypes.bfloat16, np.float32)]
)
def test_narrow_elements_add_up_in_wide_accumulators(kernel: Any, dtype: Any, sums: Any) -> None:
    rows = 32 if kernel is bytes_added else 16
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-100, 100, shape).astype(dtype) for shape in ((rows, 128), (128, rows)))
    wanted, found = np.zeros((rows, rows), sums), np.zeros((rows, rows), sums)
    kernel(a, b, wanted, config=INTERPRETED)
    program = kernel.compile(a, b, found)
    run_exported(program.as_pto(), program.source.entries[-1].name, [a, b, found], {})
    np.testing.assert_array_equal(found, wanted)
    assert "pto.tmatmul.acc" in program.as_pto()


@pl.jit
def with_bias(a: A, b: B, bias: pl.Tensor[[1, N], pl.FP32], c: pl.Out[C]):
    for i in pl.parallel(0, M, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            row = pl.load(bias, [0, 0], [1, 32])
            found = pl.matmul_bias(pl.load(a, [i, 0], [32, 64]), pl.load(b, [0, 0], [64, 32]), row)
            pl.store(pl.gemv_bias(pl.load(a, [i, 0], [1, 64]), pl.load(b, [0, 0], [64, 32]), found[:1]), [i, 0], c)
            pl.store(found[1:], [i + 1, 0], c)


@pytest.mark.parametrize("cols", [32, 24, 1])
def test_what_a_product_begins_with_is_rounded_with_it(cols: int) -> None:
    a, b = factors(64, 40, cols)
    bias, (wanted, found) = factors(1, 1, cols)[1], (np.zeros((40, cols), np.float32) for _ in range(2))
    with_bias(a, b, bias, wanted, config=INTERPRETED)
    program = with_bias.compile(a, b, bias, found)
    given = [a, b, bias, found]
    run_exported(
        program.as_pto(), program.source.entries[-1].name, given, extents_of(program.source.entries[-1], given)
    )
    np.testing.assert_array_equal(found, wanted)
