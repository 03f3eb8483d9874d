"""A barrier by hand: every rank tells all others that it has come, and waits until all have told it."""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

NR = pl.dynamic("NR")


@pl.jit
def arrive(seen: pl.Out[pl.Tensor[[NR, 1], pl.INT32]], signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(signal))
        ranks = pld.nranks(pld.get_comm_ctx(signal))
        for peer in pl.range(ranks):
            if peer != me:
                pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        for peer in pl.range(ranks):
            if peer != me:
                pld.system.wait(signal, offsets=[peer, 0], expected=1, cmp=pld.WaitCmp.Ge)
        for peer in pl.range(ranks):
            pl.write(seen, [peer, 0], pl.read(signal, [peer, 0]))
    return seen


@pl.jit.host
def barrier(seen: pl.Out[pl.Tensor[[NR, NR, 1], pl.INT32]]):
    ranks = pld.world_size()
    signals = pld.alloc_window_buffer(ranks * pl.INT32.get_byte())
    for r in pl.range(ranks):
        arrive(seen[r], pld.window(signals, [ranks, 1], dtype=pl.INT32), device=r)
    return seen


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return which ranks each one has heard of, and which it should: all but itself."""
    seen = torch.zeros(ranks, ranks, 1, dtype=torch.int32)
    barrier(seen, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return seen, (1 - torch.eye(ranks, dtype=torch.int32))[:, :, None]


if __name__ == "__main__":
    torch.testing.assert_close(*run(4))
    print("every rank has heard of all others")
