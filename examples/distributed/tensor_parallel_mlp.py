"""A tensor-parallel MLP: a rank has columns of the first matrix and rows of the second, and results are summed."""

import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

TOKENS, WIDTH, HIDDEN = 16, 64, 32
"""How many columns of the hidden layer a rank has is `HIDDEN`."""
NR = pl.dynamic("NR")


@pl.jit
def part_of_mlp(
    x: pl.Tensor[[TOKENS, WIDTH], pl.FP32],
    up: pl.Tensor[[WIDTH, HIDDEN], pl.FP32],
    down: pl.Tensor[[HIDDEN, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[TOKENS, WIDTH], pl.FP32]],
    sums: pl.InOut[pld.DistributedTensor[[TOKENS, WIDTH], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        hidden = pl.relu(pl.matmul(pl.load(x, [0, 0], [TOKENS, WIDTH]), pl.load(up, [0, 0], [WIDTH, HIDDEN])))
        part = pl.matmul(hidden, pl.load(down, [0, 0], [HIDDEN, WIDTH]))
        sums = pl.store(part, [0, 0], sums)
        sums = pld.tensor.allreduce(sums, signal)
        y = pl.store(pl.load(sums, [0, 0], [TOKENS, WIDTH]), [0, 0], y)
    return y


@pl.jit.host
def mlp(
    x: pl.Tensor[[TOKENS, WIDTH], pl.FP32],
    up: pl.Tensor[[NR, WIDTH, HIDDEN], pl.FP32],
    down: pl.Tensor[[NR, HIDDEN, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, TOKENS, WIDTH], pl.FP32]],
):
    n = pld.world_size()
    parts = pld.alloc_window_buffer([TOKENS, WIDTH], dtype=pl.FP32)
    cells = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    for r in pl.range(n):
        sums = pld.window(parts, [TOKENS, WIDTH], dtype=pl.FP32)
        part_of_mlp(x, up[r], down[r], y[r], sums, pld.window(cells, [n, 1], dtype=pl.INT32), device=r)
    return y


def run(ranks: int, platform: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the ranks compute, and what torch does with the whole matrices."""
    torch.manual_seed(0)  # every process that runs this has the same tensors
    x, up, down = torch.randn(TOKENS, WIDTH), torch.randn(WIDTH, ranks * HIDDEN), torch.randn(ranks * HIDDEN, WIDTH)
    columns = up.reshape(WIDTH, ranks, HIDDEN).transpose(0, 1).contiguous()
    y = torch.zeros(ranks, TOKENS, WIDTH)
    mlp(x, columns, down.reshape(ranks, HIDDEN, WIDTH), y, config=RunConfig(platform=platform, device_ids=range(ranks)))
    return y, (torch.relu(x @ up) @ down).expand(ranks, -1, -1)


if __name__ == "__main__":
    torch.testing.assert_close(*run(4), rtol=1e-4, atol=1e-3)
    print("every rank has the MLP's result")
