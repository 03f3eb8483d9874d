"""Folds of groups are registers, and numbers where a body computes with them as such."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import pto
from tilewright.pto import scalar

F32, I32 = pto.ptr(pto.f32, "gm"), pto.ptr(pto.i32, "gm")


def whole(p: Any, rows: int, cols: int) -> Any:
    view = pto.make_tensor_view(p, shape=[rows, cols], strides=[cols, 1])
    return pto.partition_view(view, offsets=[0, 0], sizes=[rows, cols])


@pto.simd
def steps(x: pto.Tile, most: pto.Tile, made: pto.Tile, sums: pto.Tile, counts: pto.Tile) -> None:
    """A step of a softmax over rows of eight, its numbers kept in memory."""
    with pto.for_(0, 4, step=1) as r:
        mask, _ = pto.make_mask(pto.f32, 8)
        row = pto.vlds(x[r, 0:])
        before = scalar.load(most[r, 0])
        largest = scalar.max(before, pto.vcgmax(row, mask))
        e = pto.vexp(pto.vsubs(row, largest, mask), mask)
        added, least = pto.vcgadd(e, mask), pto.vcgmin(row, mask)
        pto.vsts(e, made[r, 0:], mask)
        scalar.store(largest, most[r, 0])
        if before < least:
            scalar.store(added, sums[r, 0])
        scalar.store(1.0 + added, sums[r, 1])
        scalar.store(-least, sums[r, 2])
        scalar.store(pto.cast(least, pto.i32), counts[r, 0])


@pto.jit(target="a5")
def kernel(x: F32, most: F32, made: F32, sums: F32, counts: I32) -> None:
    tiles = [pto.alloc_tile(shape=[4, 64], dtype=pto.f32) for _ in range(4)]
    numbers = pto.alloc_tile(shape=[4, 64], dtype=pto.i32)
    places = [whole(p, 4, 64) for p in (x, most, made, sums)]
    for n in pto.static_range(4):
        pto.tile.load(places[n], tiles[n])
    pto.tile.load(whole(counts, 4, 64), numbers)
    steps(tiles[0], tiles[1], tiles[2], tiles[3], numbers)
    for n in pto.static_range(1, 4):
        pto.tile.store(tiles[n], places[n])
    pto.tile.store(numbers, whole(counts, 4, 64))


def test_the_first_lane_is_a_number_to_compute_with() -> None:
    rng = np.random.default_rng(0)
    x, most = (rng.normal(size=(4, 64)).astype(np.float32) * 4 for _ in range(2))
    most[:2, 0] = -20
    made, sums, counts = np.zeros_like(x), np.zeros_like(x), np.zeros((4, 64), np.int32)
    before, row = most[:, 0].copy(), x[:, :8]
    kernel[1, None](x, most, made, sums, counts)
    largest = np.maximum(before, row.max(1))
    e = np.exp(row - largest[:, None])
    np.testing.assert_array_equal(most[:, 0], largest)
    np.testing.assert_allclose(made[:, :8], e, rtol=1e-6)
    np.testing.assert_allclose(sums[:, 0], np.where(before < row.min(1), e.sum(1), 0), rtol=1e-6)
    np.testing.assert_allclose(sums[:, 1], 1 + e.sum(1), rtol=1e-6)
    np.testing.assert_array_equal(sums[:, 2], -row.min(1))
    np.testing.assert_array_equal(counts[:, 0], row.min(1).astype(np.int32))


@pto.simd
def folded(x: pto.Tile, out: pto.Tile) -> None:
    everything = pto.make_mask(pto.f32, pto.MaskPattern.ALL)
    sums = pto.vcgadd(pto.vlds(x[0, 0:]), everything)
    pto.vsts(pto.vadds(sums, sums, everything), out[0, 0:], everything)


@pto.jit(target="a5")
def both(x: F32, out: F32) -> None:
    a, b = pto.alloc_tile(shape=[1, 64], dtype=pto.f32), pto.alloc_tile(shape=[1, 64], dtype=pto.f32)
    pto.tile.load(whole(x, 1, 64), a)
    folded(a, b)
    pto.tile.store(b, whole(out, 1, 64))


def test_a_fold_is_a_register_and_a_number_at_once() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    both[1, None](x, out)
    sums = x.reshape(8, 8).sum(1)
    np.testing.assert_array_equal(out, np.append(sums, np.zeros(56)) + sums[0])
    assert both.compile().mlir_text().count("pto.load_scalar") == 1
