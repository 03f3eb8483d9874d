"""All-reduces around a ring: each rank reads from the one before it alone, again and again on the same signals."""
# annotations are evaluated: they name what encloses the functions

import numpy as np
import pytest

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ShapeMismatchError
from tilewright.runtime import RunConfig

TIMES = 3


def reducing(ranks: int, columns: int, op: pld.ReduceOp = pld.ReduceOp.Sum) -> pl.JITFunction:
    steps = 2 * (ranks - 1)

    @pl.jit
    def chip(
        x: pl.Tensor[[3, columns], pl.FP32],
        y: pl.Out[pl.Tensor[[3, columns], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[3, columns], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[steps, ranks], pl.INT32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            for row in pl.range(3):
                pl.store(pl.load(x, [row, 0], [1, columns]), [row, 0], data)
            for _ in pl.range(TIMES):
                pld.tensor.allreduce(data, signal, op=op, mode="ring")
            for row in pl.range(3):
                y = pl.store(pl.load(data, [row, 0], [1, columns]), [row, 0], y)
        return y

    @pl.jit.host
    def host(x: pl.Tensor[[ranks, 3, columns], pl.FP32], y: pl.Out[pl.Tensor[[ranks, 3, columns], pl.FP32]]):
        rows = pld.alloc_window_buffer([3, columns], dtype=pl.FP32)
        cells = pld.alloc_window_buffer([steps, ranks], dtype=pl.INT32)
        for r in pl.range(ranks):
            data = pld.window(rows, [3, columns], dtype=pl.FP32)
            chip(x[r], y[r], data, pld.window(cells, [steps, ranks], dtype=pl.INT32), device=r)
        return y

    return host


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize(("ranks", "columns"), [(2, 700), (3, 700), (4, 1500), (5, 64)])
def test_sums_go_around(platform: str, ranks: int, columns: int) -> None:
    x = np.random.default_rng(0).integers(0, 5, (ranks, 3, columns)).astype(np.float32)
    y = np.zeros_like(x)
    reducing(ranks, columns)(x, y, config=RunConfig(platform=platform, device_ids=range(ranks)))
    assert np.array_equal(y, np.broadcast_to(x.sum(0) * ranks ** (TIMES - 1), x.shape))


def test_rounded_sums_are_the_same_on_every_rank_and_in_the_interpreter() -> None:
    x = np.random.default_rng(0).standard_normal((4, 3, 1500)).astype(np.float32)
    y, wanted = np.zeros_like(x), np.zeros_like(x)
    for into, platform in ((y, "cpu"), (wanted, "interpret")):
        reducing(4, 1500)(x, into, config=RunConfig(platform=platform, device_ids=range(4)))
    assert np.array_equal(y, wanted) and all(np.array_equal(y[0], each) for each in y[1:])


def test_other_reductions_go_around_too() -> None:
    x = np.random.default_rng(0).standard_normal((3, 3, 64)).astype(np.float32)
    y = np.zeros_like(x)
    reducing(3, 64, pld.ReduceOp.Max)(x, y, config=RunConfig(device_ids=range(3)))
    assert np.array_equal(y, np.broadcast_to(x.max(0), x.shape))


def test_a_ring_takes_a_signal_with_a_row_for_each_step() -> None:
    @pl.jit
    def chip(
        data: pl.InOut[pld.DistributedTensor[[3, 64], pl.FP32]], signal: pl.InOut[pld.DistributedTensor[[2], pl.INT32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            pld.tensor.allreduce(data, signal, mode="ring")

    @pl.jit.host
    def host(x: pl.Tensor[[2, 8], pl.FP32]):
        rows = pld.alloc_window_buffer([3, 64], dtype=pl.FP32)
        cells = pld.alloc_window_buffer([2], dtype=pl.INT32)
        for r in pl.range(2):
            chip(pld.window(rows, [3, 64], dtype=pl.FP32), pld.window(cells, [2], dtype=pl.INT32), device=r)

    with pytest.raises(ShapeMismatchError, match=r"a signal of \[2 \* \(nranks - 1\), nranks\]"):
        host(np.zeros((2, 8), np.float32), config=RunConfig(device_ids=[0, 1]))
