"""All-gather and product in one: each rank multiplies the rows that are there while others are on their way.

The rows of `a` are spread over ranks, and so are the columns of `b`. Every rank sends its rows to all others, a signal
behind each, and then multiplies: its own rows first, then those of its neighbours in the order they come.
"""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

ROWS, K, COLUMNS = 64, 128, 128
NR = pl.dynamic("NR")


@pl.jit
def send(
    a: pl.Tensor[[ROWS, K], pl.FP32],
    gathered: pl.InOut[pld.DistributedTensor[[NR, ROWS, K], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    """Put the own rows into every rank's window, nearest first, each followed by its signal."""
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(gathered))
        ranks = pld.nranks(pld.get_comm_ctx(gathered))
        for step in pl.range(ranks):
            peer = (me - step + ranks) % ranks
            pld.tensor.remote_store(a, gathered, peer, [me, 0, 0])
            pld.system.notify(signal, peer, [me, 0], 1, op=pld.NotifyOp.Set)


@pl.jit
def multiply(
    b: pl.Tensor[[K, COLUMNS], pl.FP32],
    c: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.FP32]],
    gathered: pld.DistributedTensor[[NR, ROWS, K], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    """Multiply the rows of every rank, as soon as they are there."""
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(gathered))
        ranks = pld.nranks(pld.get_comm_ctx(gathered))
        for step in pl.range(ranks):
            owner = (me + step) % ranks
            pld.system.wait(signal, [owner, 0], 1, cmp=pld.WaitCmp.Ge)
            rows = pl.reshape(pl.load(gathered, [owner, 0, 0], [1, ROWS, K]), [ROWS, K])
            product = pl.matmul(rows, pl.load(b, [0, 0], [K, COLUMNS]))
            c = pl.store(pl.reshape(product, [1, ROWS, COLUMNS]), [owner, 0, 0], c)
    return c


@pl.jit.host
def all_gather_matmul(
    a: pl.Tensor[[NR, ROWS, K], pl.FP32],
    b: pl.Tensor[[NR, K, COLUMNS], pl.FP32],
    c: pl.Out[pl.Tensor[[NR, NR, ROWS, COLUMNS], pl.FP32]],
):
    n = pld.world_size()
    rows = pld.alloc_window_buffer(n * ROWS * K * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        gathered = pld.window(rows, [n, ROWS, K], dtype=pl.FP32)
        signal = pld.window(signals, [n, 1], dtype=pl.INT32)
        send(a[r], gathered, signal, device=r)
        multiply(b[r], c[r], gathered, signal, device=r)
    return c


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return the products of every rank, and what torch makes of all the rows."""
    torch.manual_seed(0)
    a, b = torch.randn(ranks, ROWS, K) / K**0.5, torch.randn(ranks, K, COLUMNS)
    c = torch.zeros(ranks, ranks, ROWS, COLUMNS)
    all_gather_matmul(a, b, c, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return c, a @ b[:, None]


if __name__ == "__main__":
    torch.testing.assert_close(*run(4))
    print("all-gather matmul: every rank has the product of all rows with its columns")
