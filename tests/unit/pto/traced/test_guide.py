"""The kinds of kernels that PTODSL's guide shows: copies, sums, blends, norms, products, attention."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import pto

F16, F32 = pto.ptr(pto.f16, "gm"), pto.ptr(pto.f32, "gm")


def window(p: Any, shape: Any, first: Any, size: Any) -> Any:
    """Return some rows of a matrix whose rows lie one after the other."""
    view = pto.make_tensor_view(p, shape=shape, strides=[shape[1], 1])
    return pto.partition_view(view, offsets=first, sizes=size)


@pto.jit()
def copied(x: F32, out: F32, rows: pto.i32, cols: pto.i32) -> None:
    """Tiles of a matrix of any size, the last ones valid in part."""
    tile = pto.alloc_tile(shape=[8, 32], dtype=pto.f32)
    for r in range(0, rows, 8):
        for c in range(0, cols, 32):
            size = [pto.min(8, rows - r), pto.min(32, cols - c)]
            tile.valid_shape = size
            pto.tile.load(window(x, [rows, cols], [r, c], size), tile)
            pto.tile.store(tile, window(out, [rows, cols], [r, c], size))


@pytest.mark.parametrize("shape", [(8, 32), (5, 7), (20, 70)])
def test_a_copy_by_tiles(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    out = np.zeros_like(x)
    copied[1, None](x, out, *shape)
    np.testing.assert_array_equal(out, x)


@pto.jit()
def batched(a: F32, b: F32, out: F32, *, ROWS: pto.const_expr = 8, COLS: pto.const_expr = 64) -> None:
    """One matrix of a batch for each block."""
    block = pto.cast(pto.get_block_idx(), pto.index)
    x = pto.alloc_tile(shape=[ROWS, COLS], dtype=pto.f32)
    y = pto.alloc_tile(shape=[ROWS, COLS], dtype=pto.f32)
    count = pto.cast(pto.get_block_num(), pto.index)
    shape, first, size = [count * ROWS, COLS], [block * ROWS, 0], [ROWS, COLS]
    pto.tile.load(window(a, shape, first, size), x)
    pto.tile.load(window(b, shape, first, size), y)
    pto.tile.add(x, y, x)
    pto.tile.store(x, window(out, shape, first, size))


def test_a_sum_over_a_grid_of_batches() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 5, 8, 64)).astype(np.float32)
    out = np.zeros_like(a)
    batched[5, None](a, b, out)
    np.testing.assert_array_equal(out, a + b)


@pto.jit()
def tail(a: F32, b: F32, out: F32, n: pto.i32) -> None:
    """A line in pieces of 64, the last as long as what is left."""
    x, y = pto.alloc_tile(shape=[64], dtype=pto.f32), pto.alloc_tile(shape=[64], dtype=pto.f32)
    for start in range(0, n, 64):
        left = pto.min(64, n - start)
        x.valid_shape = [left]
        y.valid_shape = [left]
        pto.tile.load(window(a, [1, n], [0, start], [1, left]), x)
        pto.tile.load(window(b, [1, n], [0, start], [1, left]), y)
        pto.tile.add(x, y, x)
        pto.tile.store(x, window(out, [1, n], [0, start], [1, left]))


@pytest.mark.parametrize("n", [64, 1, 150])
def test_a_line_whose_last_piece_is_shorter(n: int) -> None:
    a, b = np.random.default_rng(2).normal(size=(2, n)).astype(np.float32)
    out = np.zeros_like(a)
    tail[1, None](a, b, out, n)
    np.testing.assert_array_equal(out, a + b)


@pto.simd
def blend_rows(x: pto.Tile, y: pto.Tile, alpha: pto.Tile, beta: pto.Tile, rows: pto.i32, cols: pto.i32) -> None:
    """Each row by a number of its own, beside another row by another, the last lanes masked."""
    with pto.for_(0, rows, step=1) as r:
        a, b = pto.scalar.load(alpha[r, 0]), pto.scalar.load(beta[r, 0])
        lanes = pto.for_(0, cols, step=64).carry(left=cols)
        with lanes:
            mask, rest = pto.make_mask(pto.f32, lanes.left)
            first = pto.vmuls(pto.vlds(x[r, lanes.iv :]), a, mask)
            second = pto.vmuls(pto.vlds(y[r, lanes.iv :]), b, mask)
            pto.vsts(pto.vadd(first, second, mask), x[r, lanes.iv :], mask)
            lanes.update(left=rest)


@pto.jit()
def blended(x: F32, y: F32, alpha: F32, beta: F32, out: F32, *, R: pto.const_expr = 4, C: pto.const_expr = 96) -> None:
    near, far = pto.alloc_tile(shape=[R, C], dtype=pto.f32), pto.alloc_tile(shape=[R, C], dtype=pto.f32)
    a, b = (pto.alloc_tile(shape=[R, 8], dtype=pto.f32, valid_shape=[R, 1]) for _ in range(2))
    pto.tile.load(window(x, [R, C], [0, 0], [R, C]), near)
    pto.tile.load(window(y, [R, C], [0, 0], [R, C]), far)
    pto.tile.load(window(alpha, [R, 1], [0, 0], [R, 1]), a)
    pto.tile.load(window(beta, [R, 1], [0, 0], [R, 1]), b)
    blend_rows(near, far, a, b, R, C)
    pto.tile.store(near, window(out, [R, C], [0, 0], [R, C]))


def test_rows_blended_by_numbers_of_their_own() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 4, 96)).astype(np.float32)
    alpha, beta = rng.normal(size=(2, 4, 1)).astype(np.float32)
    out = np.zeros_like(x)
    blended[1, None](x, y, alpha, beta, out)
    np.testing.assert_array_equal(out, x * alpha + y * beta)


@pto.jit()
def normalized(x: F32, out: F32, rows: pto.i32, cols: pto.i32, epsilon: pto.f32) -> None:
    """A layer norm whose mean and sum of squares are carried, an element at a time, as Welford has it."""
    with pto.for_(0, rows, step=1) as r:
        first = r * cols
        seen = pto.for_(0, cols, step=1).carry(mean=pto.f32(0.0), squares=pto.f32(0.0), count=pto.f32(0.0))
        with seen:
            number = pto.scalar.load(x, first + seen.iv)
            count, apart = seen.count + 1.0, number - seen.mean
            mean = seen.mean + apart / count
            seen.update(mean=mean, squares=seen.squares + apart * (number - mean), count=count)
        mean = seen.final("mean")
        scale = 1.0 / pto.scalar.sqrt(seen.final("squares") / seen.final("count") + epsilon)
        with pto.for_(0, cols, step=1) as c:
            pto.scalar.store((pto.scalar.load(x, first + c) - mean) * scale, out, first + c)


def test_a_norm_of_rows_with_carried_numbers() -> None:
    x = np.random.default_rng(6).normal(2, 3, (3, 40)).astype(np.float32)
    out = np.zeros_like(x)
    normalized[1, None](x, out, 3, 40, 1e-5)
    wanted = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)


@pto.cube
def stage(source: Any, row_bytes: Any, near: Any) -> None:
    pto.mte_gm_l1_frac(
        source, near, "nd2nz", shape=(64, 64), src_layout=row_bytes, dst_group=(1, 1, 64, 0), ctrl=(0, False)
    )


@pto.jit()
def gemm(a: F16, b: F16, out: F32, m: pto.i32, n: pto.i32, k: pto.i32) -> None:
    """A product in blocks of 64, by the cube's own ops; what k adds up stays in the accumulator."""
    near, far = (pto.castptr(place, pto.ptr(pto.f16, "l1")) for place in (0, 8192))
    left, right = pto.castptr(0, pto.ptr(pto.f16, "l0a")), pto.castptr(0, pto.ptr(pto.f16, "l0b"))
    acc = pto.castptr(0, pto.ptr(pto.f32, "l0c"))
    with pto.section.cube():
        for i in range(0, m, 64):
            for j in range(0, n, 64):
                for p in range(0, k, 64):
                    stage(pto.addptr(a, i * k + p), k * 2, near)
                    stage(pto.addptr(b, p * n + j), n * 2, far)
                    pto.mte_l1_l0a(near, left, 64, 64)
                    pto.mte_l1_l0b(far, right, 64, 64, transpose=True)
                    if p == 0:
                        pto.mad(left, right, acc, 64, 64, 64)
                    else:
                        pto.mad_acc(left, right, acc, 64, 64, 64)
                pto.mte_l0c_gm(acc, pto.addptr(out, i * n + j), 64, 64, 64, n)


def test_a_product_in_blocks() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(128, 192)).astype(np.float16), rng.normal(size=(192, 128)).astype(np.float16)
    out = np.zeros((128, 128), np.float32)
    gemm[1, None](a, b, out, 128, 128, 192)
    np.testing.assert_allclose(out, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)


@pto.simd
def softmax_step(scores: pto.Tile, most: pto.Tile, total: pto.Tile, sums: pto.Tile) -> None:
    """Exponentials of some scores beside the largest so far, and what was added up before beside it, too."""
    everything = pto.make_mask(pto.f32, pto.MaskPattern.ALL)
    with pto.for_(0, 16, step=1) as r:
        row, before = pto.vlds(scores[r, 0:]), pto.vlds(most[r, 0:])
        largest = pto.vdup(pto.vcmax(row, everything), everything, position=pto.PositionMode.LOWEST)
        now = pto.vmax(before, largest, everything)
        less = pto.vexp(pto.vsub(before, now, everything), everything)
        e = pto.vexp(pto.vsub(row, now, everything), everything)
        added = pto.vdup(pto.vcadd(e, everything), everything, position=pto.PositionMode.LOWEST)
        pto.vsts(e, scores[r, 0:], everything)
        pto.vsts(now, most[r, 0:], everything)
        pto.vsts(
            pto.vadd(pto.vmul(pto.vlds(total[r, 0:]), less, everything), added, everything), total[r, 0:], everything
        )
        pto.vsts(pto.vmul(pto.vlds(sums[r, 0:]), less, everything), sums[r, 0:], everything)


def cube_tile(rows: int, cols: int, space: str) -> Any:
    return pto.alloc_tile(shape=[rows, cols], dtype=pto.f32, memory_space=space)


@pto.jit()
def attention(q: F32, k: F32, v: F32, out: F32, length: pto.i32, scale: pto.f32) -> None:
    """Sixteen queries over any number of keys, 64 of them at a time."""
    scores, product = (pto.alloc_tile(shape=[16, 64], dtype=pto.f32) for _ in pto.static_range(2))
    most, total = (pto.alloc_tile(shape=[16, 64], dtype=pto.f32) for _ in pto.static_range(2))
    sums = pto.alloc_tile(shape=[16, 64], dtype=pto.f32)
    staged, left, acc = cube_tile(16, 64, "mat"), cube_tile(16, 64, "left"), cube_tile(16, 64, "acc")
    block, right = cube_tile(64, 64, "mat"), cube_tile(64, 64, "right")
    most.fill(-1e30)
    total.fill(0.0)
    sums.fill(0.0)
    keys = pto.make_tensor_view(k, shape=[64, length], strides=[1, 64])
    for start in range(0, length, 64):
        pto.tile.load(window(q, [16, 64], [0, 0], [16, 64]), staged)
        pto.tile.load(pto.partition_view(keys, offsets=[0, start], sizes=[64, 64]), block)
        pto.tile.mov(staged, left)
        pto.tile.mov(block, right)
        pto.tile.matmul(left, right, acc)
        pto.tile.mov(acc, scores)
        pto.tile.muls(scores, scale, scores)
        softmax_step(scores, most, total, sums)
        pto.tile.load(window(v, [length, 64], [start, 0], [64, 64]), block)
        pto.tile.mov(scores, staged)
        pto.tile.mov(staged, left)
        pto.tile.mov(block, right)
        pto.tile.matmul(left, right, acc)
        pto.tile.mov(acc, product)
        pto.tile.add(sums, product, sums)
    pto.tile.div(sums, total, sums)
    pto.tile.store(sums, window(out, [16, 64], [0, 0], [16, 64]))


def test_attention_a_block_of_keys_at_a_time() -> None:
    rng = np.random.default_rng(4)
    q, k, v = (rng.normal(size=(rows, 64)).astype(np.float32) for rows in (16, 192, 192))
    out = np.zeros_like(q)
    attention[1, None](q, k, v, out, 192, 0.125)
    scores = (q @ k.T).astype(np.float64) * 0.125
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, weights / weights.sum(axis=1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
