"""Ring attention: every rank has a part of the sequence, and keys and values go around the ring.

While a rank attends to what it holds, that is on its way to the next one. What arrives has a place of its own for every
step, so that nobody waits for a place to be free.
"""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

S, D = 32, 64
NR, ROWS = pl.dynamic("NR"), pl.dynamic("ROWS")


@pl.jit
def attend(
    q: pl.Tensor[[S, D], pl.FP32],
    k: pl.Tensor[[S, D], pl.FP32],
    v: pl.Tensor[[S, D], pl.FP32],
    out: pl.Out[pl.Tensor[[S, D], pl.FP32]],
    keys: pl.InOut[pld.DistributedTensor[[ROWS, D], pl.FP32]],
    values: pl.InOut[pld.DistributedTensor[[ROWS, D], pl.FP32]],
    arrived: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(keys))
        ranks = pld.nranks(pld.get_comm_ctx(keys))
        following = (me + 1) % ranks
        queries = pl.load(q, [0, 0], [S, D])
        pl.store(pl.load(k, [0, 0], [S, D]), [0, 0], keys)
        pl.store(pl.load(v, [0, 0], [S, D]), [0, 0], values)
        m0 = pl.tile.full([S, 1], dtype=pl.FP32, value=-1e30)
        l0 = pl.tile.full([S, 1], dtype=pl.FP32, value=0.0)
        o0 = pl.tile.full([S, D], dtype=pl.FP32, value=0.0)
        for step, (m, l, o) in pl.range(ranks, init_values=(m0, l0, o0)):  # noqa: E741
            if step > 0:
                pld.system.wait(arrived, [step, 0], 1, cmp=pld.WaitCmp.Ge)
            if step + 1 < ranks:
                pld.tensor.put(keys, following, keys, [(step + 1) * S, 0], [step * S, 0], [S, D])
                pld.tensor.put(values, following, values, [(step + 1) * S, 0], [step * S, 0], [S, D])
                pld.system.notify(arrived, following, [step + 1, 0], 1, op=pld.NotifyOp.Set)
            block = pl.load(keys, [step * S, 0], [S, D])
            scores = pl.matmul(queries, pl.tile.transpose_view(block)) * D**-0.5
            m_new = pl.maximum(m, pl.row_max(scores))
            p = pl.row_expand_expdif(scores, m_new)
            rescale = pl.exp(m - m_new)
            l_new = l * rescale + pl.row_sum(p)
            o_new = pl.row_expand_mul(o, rescale) + pl.matmul(p, pl.load(values, [step * S, 0], [S, D]))
            m_end, l_end, o_end = pl.yield_(m_new, l_new, o_new)
        out = pl.store(pl.row_expand_div(o_end, l_end), [0, 0], out)
    return out


@pl.jit.host
def ring_attention(
    q: pl.Tensor[[NR, S, D], pl.FP32],
    k: pl.Tensor[[NR, S, D], pl.FP32],
    v: pl.Tensor[[NR, S, D], pl.FP32],
    out: pl.Out[pl.Tensor[[NR, S, D], pl.FP32]],
):
    n = pld.world_size()
    key_rows = pld.alloc_window_buffer(n * S * D * pl.FP32.get_byte())
    value_rows = pld.alloc_window_buffer(n * S * D * pl.FP32.get_byte())
    cells = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        keys = pld.window(key_rows, [n * S, D], dtype=pl.FP32)
        values = pld.window(value_rows, [n * S, D], dtype=pl.FP32)
        attend(q[r], k[r], v[r], out[r], keys, values, pld.window(cells, [n, 1], dtype=pl.INT32), device=r)
    return out


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the ranks compute, and what torch does with the whole sequence."""
    torch.manual_seed(0)  # every process that runs this has the same tensors
    q, k, v = (torch.randn(ranks, S, D) for _ in range(3))
    out = torch.zeros(ranks, S, D)
    ring_attention(q, k, v, out, config=RunConfig(platform=platform, device_ids=range(ranks)))
    whole = (x.reshape(1, ranks * S, D) for x in (q, k, v))
    return out, torch.nn.functional.scaled_dot_product_attention(*whole).reshape(ranks, S, D)


if __name__ == "__main__":
    torch.testing.assert_close(*run(4), rtol=1e-4, atol=1e-4)
    print("every rank has attended to the whole sequence")
