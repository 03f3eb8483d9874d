"""Layer norm for training: a kernel and its backward, which autograd calls.

The pair is made for a width and an element type, with any number of rows, which are taken one by one: a slice lies
inside its tensor, so that all of `x[row : row + 1]` is known to be there. The backward sums the gradients of `w` and
`b` block by block, and the blocks at the end in order: the same numbers on every run.
"""

from collections.abc import Callable
from functools import partial

import torch
from timing import show

import tilewright.language as pl

M = pl.dynamic("M")
BLOCK, EPS = 128, 1e-5


def layer_norm_of(width: int, dtype: pl.DataType) -> pl.JITFunction:
    """Return layer norm of rows of a width, with its backward."""
    Matrix, Column, Row = pl.Tensor[[M, width], dtype], pl.Tensor[[M, 1], dtype], pl.Tensor[[1, width], dtype]

    @pl.jit
    def layer_norm(x: Matrix, w: Row, b: Row, y: pl.Out[Matrix], mean: pl.Out[Column], rstd: pl.Out[Column]):
        for row in pl.parallel(M):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x[row : row + 1], [0, 0], [1, width])
                middle = pl.mean(t, axis=-1, keepdims=True)
                r = pl.rsqrt(pl.var(t, axis=-1, keepdims=True, correction=0) + EPS)
                scaled = (t - middle) * r * pl.load(w, [0, 0], [1, width])
                pl.store(scaled + pl.load(b, [0, 0], [1, width]), [row, 0], y)
                pl.store(middle, [row, 0], mean)
                pl.store(r, [row, 0], rstd)
        return y, mean, rstd

    @layer_norm.backward
    def layer_norm_backward(
        x: Matrix, w: Row, mean: Column, rstd: Column, dy: Matrix, dx: pl.Out[Matrix], dw: pl.Out[Row], db: pl.Out[Row]
    ):
        blocks = pl.cdiv(M, BLOCK)
        sums = pl.create_tensor([2, blocks, width], dtype=dtype)
        for block in pl.parallel(blocks):
            with pl.at(level=pl.Level.CORE_GROUP):
                weight = pl.load(w, [0, 0], [1, width])
                of_w = pl.tile.full([1, width], dtype=dtype, value=0.0)
                of_b = pl.tile.full([1, width], dtype=dtype, value=0.0)
                for row in pl.range(block * BLOCK, pl.min(block * BLOCK + BLOCK, M)):
                    r = pl.load(rstd[row : row + 1], [0, 0], [1, 1])
                    centered = pl.load(x[row : row + 1], [0, 0], [1, width]) - pl.load(
                        mean[row : row + 1], [0, 0], [1, 1]
                    )
                    normal = centered * r
                    g = pl.load(dy[row : row + 1], [0, 0], [1, width])
                    of_w += g * normal
                    of_b += g
                    g *= weight
                    along = pl.mean(g * normal, axis=-1, keepdims=True)
                    pl.store((g - normal * along - pl.mean(g, axis=-1, keepdims=True)) * r, [row, 0], dx)
                pl.store(of_w, [0, block, 0], sums)
                pl.store(of_b, [1, block, 0], sums)
        with pl.at(level=pl.Level.CORE_GROUP):
            of_w = pl.tile.full([1, width], dtype=dtype, value=0.0)
            of_b = pl.tile.full([1, width], dtype=dtype, value=0.0)
            for block in pl.range(blocks):
                of_w += pl.load(sums[0], [block, 0], [1, width])
                of_b += pl.load(sums[1], [block, 0], [1, width])
            pl.store(of_w, [0, 0], dw)
            pl.store(of_b, [0, 0], db)
        return dx, dw, db

    return layer_norm


layer_norm = layer_norm_of(96, pl.FP32)


def make_inputs(seed: int = 0, rows: int = 300, width: int = 96) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    x = 5 * torch.randn(rows, width, generator=generator) + 2
    return x, torch.rand(1, width, generator=generator), torch.randn(1, width, generator=generator)


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = torch.nn.functional.layer_norm(x, (x.shape[1],), w[0], b[0], EPS)
    return y, x.mean(1, keepdim=True), torch.rsqrt(x.var(1, keepdim=True, correction=0) + EPS)


def make_output(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.empty_like(x), torch.empty(len(x), 1), torch.empty(len(x), 1)


def gradients(
    function: Callable[..., tuple[torch.Tensor, ...]], x: torch.Tensor, w: torch.Tensor, b: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of half the squares of a layer norm's results, by way of autograd."""
    inputs = [t.detach().requires_grad_() for t in (x, w, b)]
    y = function(*inputs)[0]
    return torch.autograd.grad(y, inputs, y.detach())


def torch_layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.nn.functional.layer_norm(x, (x.shape[1],), w[0], b[0], EPS),)


def main() -> None:
    inputs, ours = make_inputs(rows=4096, width=1024), layer_norm_of(1024, pl.FP32)
    show("layer norm", ours, reference, inputs, make_output(*inputs), beside=torch_layer_norm)
    there_and_back = partial(gradients, ours), partial(gradients, torch_layer_norm)
    show("layer norm, there and back", *there_and_back, inputs, atol=1e-2)


if __name__ == "__main__":
    main()
