"""Product and reduce-scatter in one kernel: each block goes to the rank that sums it as soon as it is there.

Rank r has columns of A and rows of B, a part of the inner dimension, and ends with its rows of the whole product.
"""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

M, K, N = 32, 64, 48
NR, ROWS = pl.dynamic("NR"), pl.dynamic("ROWS")


@pl.jit
def multiply_and_scatter(
    a: pl.Tensor[[ROWS, K], pl.FP32],
    b: pl.Tensor[[K, N], pl.FP32],
    y: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    inbox: pl.InOut[pld.DistributedTensor[[ROWS, N], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(inbox))
        ranks = pld.nranks(pld.get_comm_ctx(inbox))
        right = pl.load(b, [0, 0], [K, N])
        for step in pl.range(ranks):  # what others wait for first, the own rows last
            peer = (me + step + 1) % ranks
            block = pl.matmul(pl.load(a, [peer * M, 0], [M, K]), right)
            pld.tile.remote_store(block, inbox, peer, [me * M, 0])
            pld.system.notify(arrived, peer, [me, 0], 1, op=pld.NotifyOp.Set)
        pld.system.wait(arrived, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        total = pl.load(inbox, [0, 0], [M, N])
        for source in pl.range(1, ranks):
            pld.system.wait(arrived, [source, 0], 1, cmp=pld.WaitCmp.Ge)
            total = pl.add(total, pl.load(inbox, [source * M, 0], [M, N]))
        y = pl.store(total, [0, 0], y)
    return y


@pl.jit.host
def matmul_reduce_scatter(
    a: pl.Tensor[[NR, ROWS, K], pl.FP32],
    b: pl.Tensor[[NR, K, N], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, M, N], pl.FP32]],
):
    n = pld.world_size()
    blocks = pld.alloc_window_buffer(n * M * N * pl.FP32.get_byte())
    cells = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        inbox = pld.window(blocks, [n * M, N], dtype=pl.FP32)
        multiply_and_scatter(a[r], b[r], y[r], inbox, pld.window(cells, [n, 1], dtype=pl.INT32), device=r)
    return y


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the ranks compute, and what torch does."""
    torch.manual_seed(0)  # every process that runs this has the same tensors
    a, b = torch.randn(ranks, ranks * M, K), torch.randn(ranks, K, N)
    y = torch.zeros(ranks, M, N)
    matmul_reduce_scatter(a, b, y, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return y, (a @ b).sum(0).reshape(ranks, M, N)


if __name__ == "__main__":
    torch.testing.assert_close(*run(4), rtol=1e-4, atol=1e-4)
    print("every rank has its rows of the product")
