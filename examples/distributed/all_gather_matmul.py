"""All-gather and product: rows of other ranks are multiplied as they arrive, or read where their ranks have them.

Rank r has rows of A and columns of B, and computes all rows of A times its columns.
"""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

M, K, N = 32, 64, 48
NR, ROWS = pl.dynamic("NR"), pl.dynamic("ROWS")


@pl.jit
def gather_and_multiply(
    a: pl.Tensor[[M, K], pl.FP32],
    b: pl.Tensor[[K, N], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, N], pl.FP32]],
    gathered: pl.InOut[pld.DistributedTensor[[ROWS, K], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(gathered))
        ranks = pld.nranks(pld.get_comm_ctx(gathered))
        for step in pl.range(ranks):
            peer = (me + step) % ranks
            pld.tensor.put(gathered, peer, a, [me * M, 0], [0, 0], [M, K])
            pld.system.notify(arrived, peer, [me, 0], 1, op=pld.NotifyOp.Set)
        columns = pl.load(b, [0, 0], [K, N])
        for step in pl.range(ranks):  # the own rows first, then those that were sent first
            source = (me - step + ranks) % ranks
            pld.system.wait(arrived, [source, 0], 1, cmp=pld.WaitCmp.Ge)
            rows = pl.load(gathered, [source * M, 0], [M, K])
            y = pl.store(pl.matmul(rows, columns), [source * M, 0], y)
    return y


@pl.jit.host
def all_gather_matmul(
    a: pl.Tensor[[NR, M, K], pl.FP32],
    b: pl.Tensor[[NR, K, N], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, ROWS, N], pl.FP32]],
):
    n = pld.world_size()
    rows = pld.alloc_window_buffer(n * M * K * pl.FP32.get_byte())
    cells = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        gathered = pld.window(rows, [n * M, K], dtype=pl.FP32)
        gather_and_multiply(a[r], b[r], y[r], gathered, pld.window(cells, [n, 1], dtype=pl.INT32), device=r)
    return y


@pl.jit
def publish(a: pl.Tensor[[M, K], pl.FP32], rows: pl.InOut[pld.DistributedTensor[[M, K], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(a, [0, 0], [M, K]), [0, 0], rows)


@pl.jit
def multiply(
    gathered: pld.DistributedTensor[[ROWS, K], pl.FP32],
    b: pl.Tensor[[K, N], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, N], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        columns = pl.load(b, [0, 0], [K, N])
        for block in pl.range(y.shape[0] // M):
            y = pl.store(pl.matmul(pl.load(gathered, [block * M, 0], [M, K]), columns), [block * M, 0], y)
    return y


@pl.jit.host
def on_host(
    a: pl.Tensor[[NR, M, K], pl.FP32],
    b: pl.Tensor[[NR, K, N], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, ROWS, N], pl.FP32]],
):
    """Gather by a collective: nobody writes the rows after it, so that products read them where the ranks have them."""
    n = pld.world_size()
    own = pld.alloc_window_buffer([M, K], dtype=pl.FP32)
    rows = pld.alloc_window_buffer(n * M * K * pl.FP32.get_byte())
    cells = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        publish(a[r], pld.window(own, [M, K], dtype=pl.FP32), device=r)
    row, every = pld.window(own, [1, M * K], dtype=pl.FP32), pld.window(rows, [n, M * K], dtype=pl.FP32)
    pld.tensor.allgather(row, every, pld.window(cells, [n, 1], dtype=pl.INT32))
    for r in pl.range(n):
        multiply(pld.window(rows, [n * M, K], dtype=pl.FP32), b[r], y[r], device=r)
    return y


WAYS = {"by_hand": all_gather_matmul, "on_host": on_host}


def run(ranks: int, platform: str = "cpu", way: str = "by_hand") -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the ranks compute, and what torch does."""
    torch.manual_seed(0)  # every process that runs this has the same tensors
    a, b = torch.randn(ranks, M, K), torch.randn(ranks, K, N)
    y = torch.zeros(ranks, ranks * M, N)
    WAYS[way](a, b, y, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return y, a.reshape(1, ranks * M, K) @ b


if __name__ == "__main__":
    for way in WAYS:
        torch.testing.assert_close(*run(4, way=way), rtol=1e-4, atol=1e-4)
        print(f"{way}: every rank has all rows times its columns")
