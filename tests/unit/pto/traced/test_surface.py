"""The surface of the embedded form: sub-kernels, handles, masks, places and names, as its guide writes kernels."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.pto.traced.tracing import lines

from tilewright import pto
from tilewright.errors import KernelError, OutsideKernelError
from tilewright.pto import scalar

Gm = pto.gm_ptr(pto.float32)


def row(p: Any, size: Any) -> Any:
    view = pto.make_tensor_view(p, shape=[1, size], strides=[size, 1])
    return pto.partition_view(view, offsets=[0, 0], sizes=[1, size])


def rows(p: Any, count: int, size: int) -> Any:
    view = pto.make_tensor_view(p, shape=[count, size], strides=[size, 1])
    return pto.partition_view(view, offsets=[0, 0], sizes=[count, size])


@pto.jit()
def tail_add(a: Gm, b: Gm, out: Gm, n: pto.i32) -> None:
    """A vector add whose last mask is of what is left."""
    x, y = pto.alloc_tile(shape=[256], dtype=pto.f32), pto.alloc_tile(shape=[256], dtype=pto.f32)
    z = pto.alloc_tile(shape=[256], dtype=pto.f32)
    z.fill(-1.0)
    pto.tile.load(row(a, 256), x)
    pto.tile.load(row(b, 256), y)
    left = n
    with pto.simd():
        for start in range(0, 256, 64):
            mask, left = pto.make_mask(pto.f32, left)
            pto.vsts(pto.vadd(pto.vlds(x[start:]), pto.vlds(y[start:]), mask), z[start:], mask)
    pto.tile.store(z, row(out, 256))


def test_masks_of_what_is_left() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 256)).astype(np.float32)
    out = np.zeros(256, np.float32)
    tail_add[1, None](a, b, out, 150)
    np.testing.assert_array_equal(out, np.where(np.arange(256) < 150, a + b, np.float32(-1)))


@pto.jit()
def double_sum(x: pto.gm_ptr(pto.f64), out: pto.gm_ptr(pto.f64), n: pto.i32) -> None:
    """A sum of doubles, which are pointed to, added as numbers, and moved."""
    total = pto.f64(0.5)
    for i in range(0, n, 1):
        total = total + scalar.load(x, i)
    scalar.store(total, out, 1)
    pto.stg(pto.ldg(x, 2), out, 0)


def test_doubles_are_numbers_in_memory() -> None:
    x, out = np.arange(1, 6) / 3, np.zeros(3)
    double_sum[1, None](x, out, 4)
    np.testing.assert_allclose(out, [x[2], 0.5 + x[:4].sum(), 0], rtol=1e-15)


@pto.simd
def blend(x: pto.Tile, y: pto.Tile, alpha: pto.f32, count: pto.index) -> None:
    everything = pto.make_mask(pto.f32, pto.MaskPattern.ALL)
    with pto.for_(0, count, step=1) as r:
        left = pto.vmuls(pto.vlds(x[r, 0:]), alpha, everything)
        right = pto.vmuls(pto.vlds(y[r, 0:]), 1.0 - alpha, everything)
        pto.vsts(pto.vadd(left, right, everything), x[r, :], everything)


@pto.jit()
def blended(a: Gm, b: Gm, out: Gm, alpha: pto.f32) -> None:
    x, y = pto.alloc_tile(shape=[8, 64], dtype=pto.f32), pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    pto.tile.load(rows(a, 8, 64), x)
    pto.tile.load(rows(b, 8, 64), y)
    blend(x, y, alpha, 8)
    pto.tile.store(x, rows(out, 8, 64))


def test_a_sub_kernel_is_written_out_in_its_scope() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 8, 64)).astype(np.float32)
    out = np.zeros_like(a)
    blended[1, None](a, b, out, 0.25)
    np.testing.assert_allclose(out, a * np.float32(0.25) + b * np.float32(0.75), rtol=1e-6)
    assert "pto.vecscope" in blended.mlir_text()
    with pytest.raises(OutsideKernelError, match=r"pto\.simd function"):
        blend(1, 2)


@pto.cube()
def multiply(a: pto.Tile, b: pto.Tile, c: pto.Tile) -> None:
    pto.tile.matmul(a, b, c)


@pto.tileop
def multiply_too(a: pto.Tile, b: pto.Tile, c: pto.Tile) -> None:
    pto.tile.matmul_acc(c, a, b, c)


@pto.jit()
def product(a: Gm, b: Gm, out: Gm) -> None:
    left = pto.alloc_tile(shape=[16, 32], dtype=pto.f32, memory_space=pto.MemorySpace.LEFT)
    right = pto.alloc_tile(shape=[32, 16], dtype=pto.f32, memory_space=pto.MemorySpace.RIGHT)
    x = pto.alloc_tile(shape=[16, 32], dtype=pto.f32, memory_space=pto.MemorySpace.MAT)
    y = pto.alloc_tile(shape=[32, 16], dtype=pto.f32, memory_space=pto.MemorySpace.MAT)
    c = pto.alloc_tile(shape=[16, 16], dtype=pto.f32, memory_space=pto.MemorySpace.ACC)
    pto.tile.load(rows(a, 16, 32), x)
    pto.tile.load(rows(b, 32, 16), y)
    pto.tile.mov(x, left)
    pto.tile.mov(y, right)
    multiply(left, right, c)
    multiply_too(left, right, c)
    pto.tile.store(c, rows(out, 16, 16))


def test_a_cube_sub_kernel_multiplies() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(16, 32)).astype(np.float32), rng.normal(size=(32, 16)).astype(np.float32)
    out = np.zeros((16, 16), np.float32)
    product[1, None](a, b, out)
    np.testing.assert_allclose(out, 2 * (a @ b), rtol=1e-5, atol=1e-5)


@pto.func
def squared(x: Any) -> Any:
    return x * x


@pto.jit()
def welford(a: Gm, out: Gm, n: pto.i32) -> None:
    """Mean and variance in one pass over numbers, carried by name."""
    zero = pto.f32(0.0)
    loop = pto.for_(0, n, step=1).carry(mean=zero, spread=zero, count=pto.f32(0))
    with loop:
        x = scalar.load(a, loop.iv)
        count = loop.count + 1.0
        delta = x - loop.mean
        mean = loop.mean + delta / count
        loop.update(mean=mean, spread=loop.spread + delta * (x - mean), count=count)
    with pto.if_(n > 0) as found:
        with found.then_:
            found.assign(variance=loop.final("spread") / loop.final("count"))
        with found.else_:
            found.assign(variance=pto.f32("nan"))
    scalar.store(loop.final("mean"), out, 0)
    scalar.store(found.variance, out, 1)
    scalar.store(squared(scalar.abs(loop.final("mean"))), out, 2)


@pytest.mark.parametrize("n", [0, 1, 50])
def test_handles_carry_and_assign(n: int) -> None:
    a = np.random.default_rng(3).normal(size=50).astype(np.float32)
    out = np.zeros(3, np.float32)
    welford[1, None](a, out, n)
    mean, variance = (float(np.mean(a[:n])), float(np.var(a[:n]))) if n else (0.0, np.nan)
    np.testing.assert_allclose(out, np.array([mean, variance, mean * mean]), rtol=1e-4, atol=1e-6)


@pto.jit()
def resized(a: Gm, out: Gm, n: pto.index) -> None:
    tile = pto.alloc_tile(shape=[4, 64], dtype=pto.f32)
    pto.tile.load(rows(a, 4, 64), tile)
    tile.valid_shape = [2, n]
    pto.tile.adds(tile, 1.0, tile)
    tile.valid_shape = [4, 64]
    pto.tile.store(tile, rows(out, 4, 64))


def test_the_valid_shape_of_a_tile_is_assigned() -> None:
    a = np.random.default_rng(4).normal(size=(4, 64)).astype(np.float32)
    out, expected = np.zeros_like(a), a.copy()
    expected[:2, :10] += 1
    resized[1, None](a, out, 10)
    np.testing.assert_array_equal(out, expected)


def test_types_are_called_to_make_numbers() -> None:
    def body(p: Any, n: Any, m: Any) -> None:
        pto.store_scalar(pto.f32("0x3F800000") + pto.f32(2), p, 0)
        pto.store_scalar(pto.f32("-inf"), p, pto.i32("0x10"))
        pto.store_scalar(pto.f32(m), p, 1)

    text = "\n".join(lines(body))
    assert "arith.sitofp %m" in text and "arith.addf %cst, %cst_1" in text
    assert "arith.index_cast %c16_i32" in text


def test_integers_of_two_widths_meet_in_the_wider() -> None:
    def body(w: Any, m: Any, k: Any, n: Any) -> None:
        wide = m + k
        pto.store_scalar(pto.cast(wide, pto.i32), w, m + n)

    assert [line.split(" = ")[1] for line in lines(body)[:3]] == [
        "arith.extsi %m : i32 to i64",
        "arith.addi %0, %k : i64",
        "arith.trunci %wide : i64 to i32",
    ]


def test_the_other_names_are_the_same_ops() -> None:
    def body(w: Any) -> None:
        a = pto.alloc_tile(shape=[8, 64], dtype=pto.i32)
        b = pto.alloc_tile(shape=[8, 64], dtype=pto.i32)
        sums = pto.alloc_tile(shape=[8, 8], dtype=pto.i32, valid_shape=[8, 1])
        pto.tile.bit_and(a, b, a)
        pto.tile.bit_xor(a, b, a, tmp=b)
        pto.tile.bit_shls(a, 2, a)
        pto.tile.rowsum(a, sums, tmp=None)

    assert [line.split()[0] for line in lines(body)[3:]] == ["pto.tand", "pto.txor", "pto.tshls", "pto.trowsum"]
    assert "ins(%a, %b, %b :" in lines(body)[4]


def test_types_are_made_by_name() -> None:
    assert pto.vreg_type(64, pto.f32) == pto.vreg_type(64, pto.float32) and pto.mask_type("b16") == pto.mask_b16
    with pytest.raises(ValueError, match="has 64 lanes"):
        pto.vreg_type(63, pto.f32)
    with pytest.raises(ValueError, match="b8, b16, b32"):
        pto.mask_type("b64")
    with pytest.raises(OutsideKernelError, match="`f32` makes numbers of a kernel"):
        pto.f32(1.0)


@pto.jit()
def compared(a: Gm, b: Gm, c: pto.gm_ptr(pto.i32)) -> None:
    t = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    u = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
    m = pto.alloc_tile(shape=[8, 64], dtype=pto.ui8)
    w = pto.alloc_tile(shape=[8, 64], dtype=pto.i32)
    pto.tile.load(rows(a, 8, 64), t)
    u.fill(100.0)
    pto.tile.cmp(t, u, m, mode=pto.CmpMode.LT)
    pto.tile.sels(m, t, 5.0, u)
    pto.tile.store(u, rows(b, 8, 64))
    pto.tile.tri(0, w, upperOrLower=1)
    pto.tile.store(w, rows(c, 8, 64))


def test_words_of_tile_ops_are_keywords() -> None:
    a, b, c = np.arange(512, dtype=np.float32), np.zeros(512, np.float32), np.zeros(512, np.int32)
    compared[1, None](a, b, c)
    np.testing.assert_array_equal(b, np.where(a < 100, a, 5))
    np.testing.assert_array_equal(c.reshape(8, 64), np.triu(np.ones((8, 64), np.int32)))


def test_a_keyword_that_an_op_does_not_read_is_refused() -> None:
    @pto.jit()
    def rounded(a: Gm) -> None:
        t = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        pto.tile.load(rows(a, 8, 64), t)
        pto.tile.cmp(t, t, t, rmode="FLOOR")

    with pytest.raises(KernelError, match="`pto.tile.cmp` has no parameter `rmode`"):
        rounded.compile()


def test_patterns_of_any_number_of_lanes_are_named() -> None:
    assert [pto.MaskPattern[f"VL{n}"].value for n in (1, 7, 128)] == ["PAT_VL1", "PAT_VL7", "PAT_VL128"]
    assert pto.VStoreDist["1PT_B16"] is pto.VStoreDist["_1PT_B16"]
