"""The ring of `ring_put.py` with a kernel written in PTO by hand, which reaches the next rank's windows by pointers."""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright import pto
from tilewright.runtime import RunConfig

SIZE = 64
NR = pl.dynamic("NR")
Floats, Signals = pto.ptr(pto.f32, "gm"), pto.ptr(pto.i32, "gm")


@pto.jit(source="hand_written_ring.pto")
def pass_on(x: Floats, there: Floats, told: Signals, here: Floats, own: Signals, y: Floats): ...


@pl.jit
def step(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    inbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(inbox)
    following = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pass_on[1, None](x, pld.part(inbox, following), pld.part(signal, following), inbox, signal, y)
    return y


@pl.jit.host
def ring(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signals = pld.alloc_window_buffer(pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        inbox = pld.window(rows, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signals, [1, 1], dtype=pl.INT32)
        step(x[r], y[r], inbox, signal, device=r)
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
