"""A tensor-parallel MLP: the hidden layer is spread over ranks, and what they make of it is added up.

Every rank has all of `x`, some columns of `w1` and the rows of `w2` that meet them, so that `relu(x @ w1) @ w2` is a
sum over ranks: one all-reduce by the host.
"""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

TOKENS, WIDTH, HIDDEN = 64, 128, 192
NR = pl.dynamic("NR")


@pl.jit
def own_part(
    x: pl.Tensor[[TOKENS, WIDTH], pl.FP32],
    w1: pl.Tensor[[WIDTH, HIDDEN], pl.FP32],
    w2: pl.Tensor[[HIDDEN, WIDTH], pl.FP32],
    sums: pl.InOut[pld.DistributedTensor[[TOKENS, WIDTH], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        hidden = pl.relu(pl.matmul(pl.load(x, [0, 0], [TOKENS, WIDTH]), pl.load(w1, [0, 0], [WIDTH, HIDDEN])))
        sums = pl.store(pl.matmul(hidden, pl.load(w2, [0, 0], [HIDDEN, WIDTH])), [0, 0], sums)


@pl.jit
def take(
    sums: pld.DistributedTensor[[TOKENS, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[TOKENS, WIDTH], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(sums, [0, 0], [TOKENS, WIDTH]), [0, 0], y)
    return y


@pl.jit.host
def mlp(
    x: pl.Tensor[[NR, TOKENS, WIDTH], pl.FP32],
    w1: pl.Tensor[[NR, WIDTH, HIDDEN], pl.FP32],
    w2: pl.Tensor[[NR, HIDDEN, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, TOKENS, WIDTH], pl.FP32]],
):
    n = pld.world_size()
    parts = pld.alloc_window_buffer(TOKENS * WIDTH * pl.FP32.get_byte())
    signals = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    sums = pld.window(parts, [TOKENS, WIDTH], dtype=pl.FP32)
    for r in pl.range(n):
        own_part(x[r], w1[r], w2[r], sums, device=r)
    sums = pld.tensor.allreduce(sums, pld.window(signals, [n], dtype=pl.INT32))
    for r in pl.range(n):
        take(sums, y[r], device=r)
    return y


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return what every rank has in the end, and what torch makes of the whole layer."""
    torch.manual_seed(0)
    x = torch.randn(TOKENS, WIDTH).expand(ranks, -1, -1).contiguous()
    w1, w2 = torch.randn(ranks, WIDTH, HIDDEN) / WIDTH**0.5, torch.randn(ranks, HIDDEN, WIDTH) / HIDDEN**0.5
    y = torch.zeros(ranks, TOKENS, WIDTH)
    mlp(x, w1, w2, y, config=RunConfig(platform=platform, device_ids=range(ranks)))
    whole = torch.relu(x[0] @ torch.cat([*w1], 1)) @ torch.cat([*w2], 0)
    return y, whole.expand(ranks, -1, -1)


if __name__ == "__main__":
    torch.testing.assert_close(*run(4))
    print("tensor-parallel MLP: every rank has the whole layer's output")
