"""All-reduce, five ways: around a ring or in two shots by hand, and by a collective of a kernel, around a ring too, or
of the host."""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

SIZE = 256
NR, STEPS = pl.dynamic("NR"), pl.dynamic("STEPS")


@pl.jit
def ring_chip(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    inbox: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 2], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(data))
        ranks = pld.nranks(pld.get_comm_ctx(data))
        following = (me + 1) % ranks
        for row in pl.range(ranks):
            data = pl.store(pl.load(x, [row, 0], [1, SIZE]), [row, 0], data)
        for step in pl.range(ranks - 1):  # every row goes around once, and each rank adds its own
            row = (me - step + ranks) % ranks
            pld.tensor.put(inbox, following, data, [step, 0], [row, 0], [1, SIZE])
            pld.system.notify(signal, following, [step, 0], 1, op=pld.NotifyOp.Set)
            pld.system.wait(signal, [step, 0], 1, cmp=pld.WaitCmp.Ge)
            row = (me - step - 1 + ranks) % ranks
            total = pl.add(pl.load(data, [row, 0], [1, SIZE]), pl.load(inbox, [step, 0], [1, SIZE]))
            data = pl.store(total, [row, 0], data)
        for step in pl.range(ranks - 1):  # and once more, with the sums
            row = (me + 1 - step + ranks) % ranks
            pld.tensor.put(data, following, data, [row, 0], [row, 0], [1, SIZE])
            pld.system.notify(signal, following, [step, 1], 1, op=pld.NotifyOp.Set)
            pld.system.wait(signal, [step, 1], 1, cmp=pld.WaitCmp.Ge)
        for row in pl.range(ranks):
            y = pl.store(pl.load(data, [row, 0], [1, SIZE]), [row, 0], y)
    return y


@pl.jit.host
def ring(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    n = pld.world_size()
    rows = pld.alloc_window_buffer(n * SIZE * pl.FP32.get_byte())
    arriving = pld.alloc_window_buffer(n * SIZE * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer(n * 2 * pl.INT32.get_byte())
    for r in pl.range(n):
        data = pld.window(rows, [n, SIZE], dtype=pl.FP32)
        inbox = pld.window(arriving, [n, SIZE], dtype=pl.FP32)
        ring_chip(x[r], y[r], data, inbox, pld.window(signals, [n, 2], dtype=pl.INT32), device=r)
    return y


@pl.jit
def two_shot_chip(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(data))
        ranks = pld.nranks(pld.get_comm_ctx(data))
        for row in pl.range(ranks):
            data = pl.store(pl.load(x, [row, 0], [1, SIZE]), [row, 0], data)
        pld.tensor.barrier(signal)
        total = pld.tile.remote_load(data, 0, [me, 0], [1, SIZE])
        for peer in pl.range(1, ranks):
            total = pl.add(total, pld.tile.remote_load(data, peer, [me, 0], [1, SIZE]))
        for peer in pl.range(ranks):
            pld.tile.remote_store(total, data, peer, [me, 0])
        pld.tensor.barrier(signal)
        for row in pl.range(ranks):
            y = pl.store(pl.load(data, [row, 0], [1, SIZE]), [row, 0], y)
    return y


@pl.jit.host
def two_shot(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    n = pld.world_size()
    rows = pld.alloc_window_buffer(n * SIZE * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        data = pld.window(rows, [n, SIZE], dtype=pl.FP32)
        two_shot_chip(x[r], y[r], data, pld.window(signals, [n, 1], dtype=pl.INT32), device=r)
    return y


@pl.jit
def publish(x: pl.Tensor[[NR, SIZE], pl.FP32], data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(x.shape[0]):
            data = pl.store(pl.load(x, [row, 0], [1, SIZE]), [row, 0], data)


@pl.jit
def consume(data: pld.DistributedTensor[[NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(y.shape[0]):
            y = pl.store(pl.load(data, [row, 0], [1, SIZE]), [row, 0], y)
    return y


@pl.jit
def reduce_chip(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(x.shape[0]):
            data = pl.store(pl.load(x, [row, 0], [1, SIZE]), [row, 0], data)
        data = pld.tensor.allreduce(data, signal)
        for row in pl.range(x.shape[0]):
            y = pl.store(pl.load(data, [row, 0], [1, SIZE]), [row, 0], y)
    return y


@pl.jit.host
def in_kernel(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    n = pld.world_size()
    rows = pld.alloc_window_buffer(n * SIZE * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        data = pld.window(rows, [n, SIZE], dtype=pl.FP32)
        reduce_chip(x[r], y[r], data, pld.window(signals, [n, 1], dtype=pl.INT32), device=r)
    return y


@pl.jit
def around_chip(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[STEPS, NR], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(x.shape[0]):
            data = pl.store(pl.load(x, [row, 0], [1, SIZE]), [row, 0], data)
        data = pld.tensor.allreduce(data, signal, mode="ring")
        for row in pl.range(x.shape[0]):
            y = pl.store(pl.load(data, [row, 0], [1, SIZE]), [row, 0], y)
    return y


@pl.jit.host
def around(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    n = pld.world_size()
    rows = pld.alloc_window_buffer(n * SIZE * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer(2 * (n - 1) * n * pl.INT32.get_byte())
    for r in pl.range(n):
        data = pld.window(rows, [n, SIZE], dtype=pl.FP32)
        around_chip(x[r], y[r], data, pld.window(signals, [2 * (n - 1), n], dtype=pl.INT32), device=r)
    return y


@pl.jit.host
def on_host(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    n = pld.world_size()
    rows = pld.alloc_window_buffer(n * SIZE * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    data = pld.window(rows, [n, SIZE], dtype=pl.FP32)
    for r in pl.range(n):
        publish(x[r], data, device=r)
    data = pld.tensor.allreduce(data, pld.window(signals, [n], dtype=pl.INT32))
    for r in pl.range(n):
        consume(data, y[r], device=r)
    return y


WAYS = {"ring": ring, "two_shot": two_shot, "in_kernel": in_kernel, "around": around, "on_host": on_host}


def run(ranks: int, platform: str = "cpu", way: str = "ring") -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the ranks make of random rows, and what they should: the sum, on all of them."""
    torch.manual_seed(0)  # every process that runs this has the same tensors
    x = torch.randn(ranks, ranks, SIZE)
    y = torch.zeros_like(x)
    WAYS[way](x, y, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return y, x.sum(0).expand(ranks, -1, -1)


if __name__ == "__main__":
    for way in WAYS:
        torch.testing.assert_close(*run(4, way=way))
        print(f"{way}: every rank has the sum of all")
