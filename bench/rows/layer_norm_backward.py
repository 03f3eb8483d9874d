"""The backward of a layer norm: gradients of rows, and of the weights, which are sums over all rows."""

import torch
from contest import EAGER, OURS, Contest, Field, Work
from memory import output

import tilewright.language as pl

N, COLS, BLOCKS = 4096, 1024, 16
EPS = 1e-5


@pl.jit
def layer_norm_backward(
    x: pl.Tensor, w: pl.Tensor, mean: pl.Tensor, rstd: pl.Tensor, dy: pl.Tensor,
    dx: pl.Out[pl.Tensor], dw: pl.Out[pl.Tensor], db: pl.Out[pl.Tensor],
):  # fmt: skip
    sums = pl.create_tensor([2 * BLOCKS, COLS], dtype=pl.FP32)
    for block in pl.parallel(BLOCKS):
        with pl.at(level=pl.Level.CORE_GROUP):
            scale = pl.load(w, [0, 0], [1, COLS])
            of_w = pl.tile.full([1, COLS], dtype=pl.FP32, value=0.0)
            of_b = pl.tile.full([1, COLS], dtype=pl.FP32, value=0.0)
            for row in pl.range(block, x.shape[0], BLOCKS):
                r = pl.load(rstd, [row, 0], [1, 1])
                normal = (pl.load(x, [row, 0], [1, COLS]) - pl.load(mean, [row, 0], [1, 1])) * r
                g = pl.load(dy, [row, 0], [1, COLS])
                of_w += g * normal
                of_b += g
                g *= scale
                along, across = pl.row_sum(g * normal) / COLS, pl.row_sum(g) / COLS
                pl.store((g - normal * along - across) * r, [row, 0], dx)
            pl.store(of_w, [block, 0], sums)
            pl.store(of_b, [BLOCKS + block, 0], sums)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.col_sum(pl.load(sums, [0, 0], [BLOCKS, COLS])), [0, 0], dw)
        pl.store(pl.col_sum(pl.load(sums, [BLOCKS, 0], [BLOCKS, COLS])), [0, 0], db)


def enter() -> Field:
    x, dy, w, b = torch.randn(N, COLS), torch.randn(N, COLS), torch.rand(1, COLS), torch.rand(1, COLS)
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, [COLS], w[0], b[0], EPS)
    outputs = output(N, COLS), output(1, COLS), output(1, COLS)
    theirs = output(N, COLS), output(COLS), output(COLS)

    def ours() -> torch.Tensor:
        layer_norm_backward(x, w, mean, rstd, dy, *outputs)
        return outputs[0]

    def eager() -> torch.Tensor:
        named = {"out0": theirs[0], "out1": theirs[1], "out2": theirs[2]}
        wanted = [True, True, True]
        torch.ops.aten.native_layer_norm_backward.out(dy, x, [COLS], mean, rstd, w[0], b[0], wanted, **named)
        return theirs[0]

    return Field(eager().clone(), {OURS: ours, EAGER: eager})


ROWS = (Contest(f"layer_norm backward {N}x{COLS}", enter, Work(bytes=3 * 4 * N * COLS), target=1.0),)
