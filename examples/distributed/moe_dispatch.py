"""Expert parallelism: tokens go to the rank of their expert, and what that makes of them comes back.

Tokens are packed where they go, each into the next free row that their rank has there. The expert learns how many there
are with the signal that they have arrived, and multiplies as many rows.
"""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

TOKENS, WIDTH = 8, 32
NR, ROWS = pl.dynamic("NR"), pl.dynamic("ROWS")


@pl.jit
def dispatch(
    x: pl.Tensor[[TOKENS, WIDTH], pl.FP32],
    expert_of: pl.Tensor[[TOKENS], pl.INT32],
    expert: pl.Tensor[[WIDTH, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[TOKENS, WIDTH], pl.FP32]],
    sent: pl.InOut[pl.Tensor[[NR], pl.INT32]],
    inbox: pl.InOut[pld.DistributedTensor[[ROWS, WIDTH], pl.FP32]],
    outbox: pl.InOut[pld.DistributedTensor[[ROWS, WIDTH], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 2], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(inbox))
        ranks = pld.nranks(pld.get_comm_ctx(inbox))
        for token in pl.range(TOKENS):
            goes = pl.read(expert_of, [token])
            row = pl.read(sent, [goes])
            pld.tensor.put(inbox, goes, x, [me * TOKENS + row, 0], [token, 0], [1, WIDTH])
            pl.write(sent, [goes], row + 1)
        for peer in pl.range(ranks):  # one more than the number, so that none is a signal, too
            pld.system.notify(signal, peer, [me, 0], pl.read(sent, [peer]) + 1, op=pld.NotifyOp.Set)
        weights = pl.load(expert, [0, 0], [WIDTH, WIDTH])
        for source in pl.range(ranks):
            pld.system.wait(signal, [source, 0], 1, cmp=pld.WaitCmp.Ge)
            count = pl.read(signal, [source, 0]) - 1
            rows = pl.load(inbox, [source * TOKENS, 0], [TOKENS, WIDTH], valid_shape=[count, WIDTH])
            pld.tile.remote_store(pl.matmul(rows, weights), outbox, source, [me * TOKENS, 0])
            pld.system.notify(signal, source, [me, 1], 1, op=pld.NotifyOp.Set)
        for peer in pl.range(ranks):
            pld.system.wait(signal, [peer, 1], 1, cmp=pld.WaitCmp.Ge)
            pl.write(sent, [peer], 0)
        for token in pl.range(TOKENS):
            went = pl.read(expert_of, [token])
            row = pl.read(sent, [went])
            y = pl.store(pl.load(outbox, [went * TOKENS + row, 0], [1, WIDTH]), [token, 0], y)
            pl.write(sent, [went], row + 1)
    return y


@pl.jit.host
def moe(
    x: pl.Tensor[[NR, TOKENS, WIDTH], pl.FP32],
    expert_of: pl.Tensor[[NR, TOKENS], pl.INT32],
    experts: pl.Tensor[[NR, WIDTH, WIDTH], pl.FP32],
    sent: pl.InOut[pl.Tensor[[NR, NR], pl.INT32]],
    y: pl.Out[pl.Tensor[[NR, TOKENS, WIDTH], pl.FP32]],
):
    n = pld.world_size()
    arriving = pld.alloc_window_buffer(n * TOKENS * WIDTH * pl.FP32.get_byte())
    returning = pld.alloc_window_buffer(n * TOKENS * WIDTH * pl.FP32.get_byte())
    cells = pld.alloc_window_buffer(n * 2 * pl.INT32.get_byte())
    for r in pl.range(n):
        inbox = pld.window(arriving, [n * TOKENS, WIDTH], dtype=pl.FP32)
        outbox = pld.window(returning, [n * TOKENS, WIDTH], dtype=pl.FP32)
        signal = pld.window(cells, [n, 2], dtype=pl.INT32)
        dispatch(x[r], expert_of[r], experts[r], y[r], sent[r], inbox, outbox, signal, device=r)
    return y


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the experts make of the tokens, and what torch does."""
    torch.manual_seed(0)  # every process that runs this has the same tensors
    x, experts = torch.randn(ranks, TOKENS, WIDTH), torch.randn(ranks, WIDTH, WIDTH)
    expert_of = torch.randint(ranks, (ranks, TOKENS), dtype=torch.int32)
    y, sent = torch.zeros_like(x), torch.zeros(ranks, ranks, dtype=torch.int32)
    moe(x, expert_of, experts, sent, y, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return y, (x[:, :, None, :] @ experts[expert_of.long()])[:, :, 0]


if __name__ == "__main__":
    torch.testing.assert_close(*run(4), rtol=1e-4, atol=1e-4)
    print("every token has been to its expert and back")
