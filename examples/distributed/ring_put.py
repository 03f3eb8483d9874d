"""A ring: every rank puts its row into the window of the next one, which waits for the signal that it is there."""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

SIZE = 64
NR = pl.dynamic("NR")


@pl.jit
def pass_on(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    inbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        ctx = pld.get_comm_ctx(inbox)
        following = (pld.rank(ctx) + 1) % pld.nranks(ctx)
        pld.tensor.put(inbox, peer=following, src=x)
        pld.system.notify(signal, peer=following, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
        pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        y = pl.store(pl.load(inbox, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.host
def ring(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signals = pld.alloc_window_buffer(pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        inbox = pld.window(rows, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signals, [1, 1], dtype=pl.INT32)
        pass_on(x[r], y[r], inbox, signal, device=r)
    return y


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the ranks make of random rows, and what they should."""
    torch.manual_seed(0)  # every process that runs this has the same tensors
    x = torch.randn(ranks, 1, SIZE)
    y = torch.zeros_like(x)
    ring(x, y, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return y, x.roll(1, 0)


if __name__ == "__main__":
    torch.testing.assert_close(*run(4))
    print("every rank has the row of the one before it")
