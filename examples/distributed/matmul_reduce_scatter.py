"""Product and reduce-scatter in one: each part of the product leaves for its owner as soon as it is computed.

The inner dimension is spread over ranks. Every rank multiplies what it has, a block of rows at a time, and puts each
block into the window of the rank that owns it, its own last; owners add what came, in the order of ranks.
"""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

ROWS, K, COLUMNS = 64, 128, 128
NR = pl.dynamic("NR")


@pl.jit
def multiply(
    a: pl.Tensor[[NR, ROWS, K], pl.FP32],
    b: pl.Tensor[[K, COLUMNS], pl.FP32],
    parts: pl.InOut[pld.DistributedTensor[[NR, ROWS, COLUMNS], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    """Multiply a block of rows for every rank, and send it there."""
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(parts))
        ranks = pld.nranks(pld.get_comm_ctx(parts))
        right = pl.load(b, [0, 0], [K, COLUMNS])
        for step in pl.range(ranks):
            owner = (me + 1 + step) % ranks
            rows = pl.reshape(pl.load(a, [owner, 0, 0], [1, ROWS, K]), [ROWS, K])
            pld.tile.remote_store(pl.matmul(rows, right), parts, owner, [me, 0, 0])
            pld.system.notify(signal, owner, [me, 0], 1, op=pld.NotifyOp.Set)


@pl.jit
def add_up(
    c: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.FP32]],
    parts: pld.DistributedTensor[[NR, ROWS, COLUMNS], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    """Add the parts of the own rows, each once it is there."""
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.tile.full([ROWS, COLUMNS], dtype=pl.FP32, value=0.0)
        for rank in pl.range(pld.nranks(pld.get_comm_ctx(parts))):
            pld.system.wait(signal, [rank, 0], 1, cmp=pld.WaitCmp.Ge)
            part = pl.load(parts, [rank, 0, 0], [1, ROWS, COLUMNS])
            total = pl.add(total, pl.reshape(part, [ROWS, COLUMNS]))
        c = pl.store(total, [0, 0], c)
    return c


@pl.jit.host
def matmul_reduce_scatter(
    a: pl.Tensor[[NR, NR, ROWS, K], pl.FP32],
    b: pl.Tensor[[NR, K, COLUMNS], pl.FP32],
    c: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32]],
):
    n = pld.world_size()
    products = pld.alloc_window_buffer(n * ROWS * COLUMNS * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        parts = pld.window(products, [n, ROWS, COLUMNS], dtype=pl.FP32)
        signal = pld.window(signals, [n, 1], dtype=pl.INT32)
        multiply(a[r], b[r], parts, signal, device=r)
        add_up(c[r], parts, signal, device=r)
    return c


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows of the product that each rank owns, and what torch makes of them."""
    torch.manual_seed(0)
    a, b = torch.randn(ranks, ranks, ROWS, K) / K**0.5, torch.randn(ranks, K, COLUMNS)
    c = torch.zeros(ranks, ROWS, COLUMNS)
    matmul_reduce_scatter(a, b, c, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return c, (a @ b[:, None]).sum(0)


if __name__ == "__main__":
    torch.testing.assert_close(*run(4))
    print("matmul reduce-scatter: every rank has its rows of the whole product")
