"""Traced kernels against NumPy."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import pto

COLS = 64


def window(p: Any, row: Any, rows: Any, total: Any) -> Any:
    view = pto.make_tensor_view(p, shape=[total, COLS], strides=[COLS, 1])
    return pto.partition_view(view, offsets=[row, 0], sizes=[rows, COLS])


@pto.jit(entry=False)
def scale(tile: pto.Tile, by: pto.f32) -> None:
    pto.tile.muls(tile, by, tile)


@pto.jit()
def softmax(a: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), n: pto.i32, *, ROWS: pto.const_expr = 16) -> None:
    x = pto.alloc_tile(shape=[ROWS, COLS], dtype=pto.f32)
    column = pto.alloc_tile(shape=[ROWS, 1], dtype=pto.f32, blayout="ColMajor")
    total = pto.cast(n, pto.index)
    block, blocks = pto.get_block_idx(), pto.get_block_num()
    for start in range(block * ROWS, total, blocks * ROWS):
        pto.tile.load(window(a, start, ROWS, total), x)
        pto.tile.rowmax(x, column)
        pto.tile.rowexpandsub(x, column, x)
        pto.tile.exp(x, x)
        pto.tile.rowsum(x, column)
        pto.tile.rowexpanddiv(x, column, x)
        scale(x, 2.0)
        pto.tile.store(x, window(out, start, ROWS, total))


@pto.jit()
def ragged(a: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), n: pto.i32) -> None:
    total = pto.cast(n, pto.index)
    for start in range(0, total, 16):
        rows = min(total - start, 16)
        x = pto.alloc_tile(shape=[16, COLS], dtype=pto.f32, valid_row=rows, valid_col=COLS)
        pto.tile.load(window(a, start, rows, total), x)
        if rows < 16:
            pto.tile.neg(x, x)
        else:
            pto.tile.adds(x, 1, x)
        pto.tile.store(x, window(out, start, rows, total))


@pto.jit()
def swap(a: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), n: pto.i32) -> None:
    ping = pto.alloc_tile(shape=[16, COLS], dtype=pto.f32)
    pong = pto.alloc_tile(shape=[16, COLS], dtype=pto.f32)
    pto.tile.load(window(a, 0, 16, 16), ping)
    for _ in range(n):
        pto.tile.adds(ping, 1, pong)
        ping, pong = pong, ping
    pto.tile.store(ping, window(out, 0, 16, 16))


@pto.jit(mode="explicit")
def vmadd(
    acc: pto.ptr(pto.f32, "gm"), lhs: pto.ptr(pto.f32, "gm"), rhs: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm")
) -> None:
    a, b, c, result = (
        pto.castptr(0, pto.ptr(pto.f32)),
        pto.castptr(4096, pto.ptr(pto.f32)),
        pto.castptr(8192, pto.ptr(pto.f32)),
        pto.castptr(12288, pto.ptr(pto.f32)),
    )
    for source, place in ((acc, a), (lhs, b), (rhs, c)):
        pto.mte_load(source, place, 0, 128, nburst=(32, 128, 128))
    pto.set_flag("MTE2", "V", event_id=0)
    pto.wait_flag("MTE2", "V", event_id=0)
    with pto.vecscope():
        every = pto.pset_b32("PAT_ALL")
        for i in range(0, 1024, pto.elements_per_vreg(pto.f32)):
            product = pto.vmadd(pto.vlds(a, i), pto.vlds(b, i), pto.vlds(c, i), every)
            pto.vsts(product, result, i, every)
    pto.mte_store(result, out, 128, nburst=(32, 128, 128))
    pto.barrier("ALL")


@pto.jit()
def scalars(out: pto.ptr(pto.i32, "gm"), n: pto.i32, d: pto.i32) -> None:
    pto.store_scalar(n // d, out, 0)
    pto.store_scalar(n % d, out, 1)
    total, step = 0, 0
    while total < n * n:
        total = total + step
        step += 1
    pto.store_scalar(pto.cast(total, pto.i32), out, 2)
    best = n
    for i in range(n, 3):
        if i % 2 == 0:
            best = max(best, pto.cast(i, pto.i32) * 3)
        else:
            best = best + 1
    pto.store_scalar(best, out, 3)


def matrix(rows: int) -> Any:
    return np.random.default_rng(rows).standard_normal((rows, COLS)).astype(np.float32)


@pytest.mark.parametrize("grid", [1, 3])
@pytest.mark.parametrize("rows", [8, 16])
def test_a_softmax_over_blocks_of_rows(grid: int, rows: int) -> None:
    a, out = matrix(64), np.zeros((64, COLS), np.float32)
    softmax.compile(ROWS=rows)[grid, None](a, out, 64)
    shifted = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(out, 2 * shifted / shifted.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("rows", [16, 21, 5])
def test_a_ragged_tail_takes_the_other_branch(rows: int) -> None:
    a, out = matrix(rows), np.zeros((rows, COLS), np.float32)
    ragged[1, None](a, out, rows)
    whole = rows // 16 * 16
    np.testing.assert_array_equal(out, np.concatenate([a[:whole] + 1, -a[whole:]]))


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_tiles_swap_places_each_round(rounds: int) -> None:
    a, out = matrix(16), np.zeros((16, COLS), np.float32)
    swap[1, None](a, out, rounds)
    np.testing.assert_allclose(out, a + rounds, rtol=1e-6, atol=1e-6)


def test_vectors_are_multiplied_and_added() -> None:
    random = np.random.default_rng(29)
    acc, lhs, rhs = (random.uniform(-size, size, 1024).astype(np.float32) for size in (2, 3, 1))
    out = np.zeros(1024, np.float32)
    vmadd[1, None](acc, lhs, rhs, out)
    np.testing.assert_allclose(out, acc * lhs + rhs, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(("n", "d"), [(7, 3), (-7, 3), (7, -3), (-7, -3)])
def test_scalars_are_what_python_makes_of_them(n: int, d: int) -> None:
    out = np.zeros(4, np.int32)
    scalars[1, None](out, n, d)
    total = step = 0
    while total < n * n:
        total += step
        step += 1
    best = n
    for i in range(n, 3):
        best = max(best, i * 3) if i % 2 == 0 else best + 1
    assert out.tolist() == [n // d, n % d, total, best]


def test_a_kernel_is_traced_again_when_what_it_read_has_changed() -> None:
    limits = {"value": 3}

    @pto.jit()
    def fill(out: pto.ptr(pto.i32, "gm")) -> None:
        pto.store_scalar(limits["value"], out, 0)

    out = np.zeros(1, np.int32)
    fill[1, None](out)
    first = fill.compile()
    assert (out[0], fill.compile() is first) == (3, True)
    limits["value"] = 5
    fill[1, None](out)
    assert (out[0], fill.compile() is first) == (5, False)
