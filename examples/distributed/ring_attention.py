"""Ring attention: every rank keeps its queries, and the keys and values go around.

A rank holds a part of a long sequence. In each step it attends to the keys that are with it and passes them on; running
maxima and sums put the parts together, so that no rank ever has all keys, nor a row of scores.
"""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

LENGTH, WIDTH = 64, 64  # of the part of one rank
NR = pl.dynamic("NR")


@pl.jit
def attend(
    q: pl.Tensor[[LENGTH, WIDTH], pl.FP32],
    k: pl.Tensor[[LENGTH, WIDTH], pl.FP32],
    v: pl.Tensor[[LENGTH, WIDTH], pl.FP32],
    out: pl.Out[pl.Tensor[[LENGTH, WIDTH], pl.FP32]],
    keys: pl.InOut[pld.DistributedTensor[[NR, LENGTH, WIDTH], pl.FP32]],
    values: pl.InOut[pld.DistributedTensor[[NR, LENGTH, WIDTH], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    """Attend to every rank's keys, those that lie in row `step` of the windows in turn."""
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(keys))
        ranks = pld.nranks(pld.get_comm_ctx(keys))
        following = (me + 1) % ranks
        keys = pl.store(pl.reshape(pl.load(k, [0, 0], [LENGTH, WIDTH]), [1, LENGTH, WIDTH]), [0, 0, 0], keys)
        values = pl.store(pl.reshape(pl.load(v, [0, 0], [LENGTH, WIDTH]), [1, LENGTH, WIDTH]), [0, 0, 0], values)
        queries = pl.load(q, [0, 0], [LENGTH, WIDTH]) * WIDTH**-0.5
        most = pl.tile.full([LENGTH, 1], dtype=pl.FP32, value=-1e30)
        total = pl.tile.full([LENGTH, 1], dtype=pl.FP32, value=0.0)
        sums = pl.tile.full([LENGTH, WIDTH], dtype=pl.FP32, value=0.0)
        for step in pl.range(ranks):
            if step < ranks - 1:  # on their way while this rank works with them
                here, there, part = [step, 0, 0], [step + 1, 0, 0], [1, LENGTH, WIDTH]
                pld.tensor.put(keys, following, keys, there, here, part)
                pld.tensor.put(values, following, values, there, here, part)
                pld.system.notify(signal, following, [step + 1, 0], 1, op=pld.NotifyOp.Set)
            own_keys = pl.reshape(pl.load(keys, [step, 0, 0], [1, LENGTH, WIDTH]), [LENGTH, WIDTH])
            own_values = pl.reshape(pl.load(values, [step, 0, 0], [1, LENGTH, WIDTH]), [LENGTH, WIDTH])
            scores = pl.matmul(queries, pl.tile.transpose_view(own_keys))
            higher = pl.maximum(most, pl.row_max(scores))
            weights = pl.exp(scores - higher)
            kept = pl.exp(most - higher)
            total = total * kept + pl.row_sum(weights)
            sums = sums * kept + pl.matmul(weights, own_values)
            most = higher
            if step < ranks - 1:
                pld.system.wait(signal, [step + 1, 0], 1, cmp=pld.WaitCmp.Ge)
        out = pl.store(sums / total, [0, 0], out)
    return out


@pl.jit.host
def ring_attention(
    q: pl.Tensor[[NR, LENGTH, WIDTH], pl.FP32],
    k: pl.Tensor[[NR, LENGTH, WIDTH], pl.FP32],
    v: pl.Tensor[[NR, LENGTH, WIDTH], pl.FP32],
    out: pl.Out[pl.Tensor[[NR, LENGTH, WIDTH], pl.FP32]],
):
    n = pld.world_size()
    passing_keys = pld.alloc_window_buffer(n * LENGTH * WIDTH * pl.FP32.get_byte())
    passing_values = pld.alloc_window_buffer(n * LENGTH * WIDTH * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        keys = pld.window(passing_keys, [n, LENGTH, WIDTH], dtype=pl.FP32)
        values = pld.window(passing_values, [n, LENGTH, WIDTH], dtype=pl.FP32)
        signal = pld.window(signals, [n, 1], dtype=pl.INT32)
        attend(q[r], k[r], v[r], out[r], keys, values, signal, device=r)
    return out


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return what all queries of the sequence attend to, and what torch makes of the whole of it."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, ranks, LENGTH, WIDTH)
    out = torch.zeros_like(q)
    ring_attention(q, k, v, out, config=RunConfig(platform=platform, device_ids=range(ranks)))
    whole = [x.reshape(1, ranks * LENGTH, WIDTH) for x in (q, k, v)]
    return out, torch.nn.functional.scaled_dot_product_attention(*whole).reshape_as(out)


if __name__ == "__main__":
    torch.testing.assert_close(*run(4))
    print("ring attention: every rank has its rows of the attention over the whole sequence")
