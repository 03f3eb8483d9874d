"""A mixture of experts: which experts each token goes to, and their products.

Routing is a softmax over the experts and the best of it. After that tokens are ordered by expert, so that each expert
has a run of them, of any length: its product takes rows from where the order says, as far as the run goes.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

ROWS, TM, TN = 64, 64, 64


@pl.jit
def route(logits: pl.Tensor, share: pl.Out[pl.Tensor], expert: pl.Out[pl.Tensor]):
    tokens, experts = logits.shape
    for row in pl.parallel(0, tokens, ROWS):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(logits, [row, 0], [ROWS, experts])
            best, place = pl.topk(pl.softmax(t, axis=-1), share.shape[1])
            pl.store(best / pl.sum(best, axis=-1, keepdims=True), [row, 0], share)
            pl.store(place, [row, 0], expert)
    return share, expert


@pl.jit.incore
def multiply(
    x: pl.Tensor, order: pl.Tensor, ends: pl.Tensor, weight: pl.Tensor, expert: pl.INDEX, col: pl.INDEX,
    out: pl.Out[pl.Tensor],
):  # fmt: skip
    w = pl.load(weight[expert], [0, col], [x.shape[1], TN])
    end = pl.read(ends, [expert + 1])
    for row in pl.range(pl.read(ends, [expert]), end, TM):
        tokens = pl.load(order, [row], [TM], valid_shape=[pl.min(TM, end - row)])
        out = pl.store(x[tokens] @ w, [row, col], out)
    return out


@pl.jit
def grouped_matmul(x: pl.Tensor, order: pl.Tensor, ends: pl.Tensor, weight: pl.Tensor, out: pl.Out[pl.Tensor]):
    for expert in pl.parallel(weight.shape[0]):
        for col in pl.parallel(0, weight.shape[2], TN):
            out = multiply(x, order, ends, weight, expert, col, out)
    return out


def make_inputs_route(seed: int = 0, tokens: int = 100, experts: int = 16) -> tuple[torch.Tensor]:
    return (torch.randn(tokens, experts, generator=torch.Generator().manual_seed(seed)),)


def make_output_route(logits: torch.Tensor, k: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty(len(logits), k), torch.empty(len(logits), k, dtype=torch.int32)


def reference_route(logits: torch.Tensor, k: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    share, expert = torch.topk(torch.softmax(logits, dim=-1), k)
    return share / share.sum(dim=-1, keepdim=True), expert.int()


def make_inputs_grouped_matmul(
    seed: int = 0, tokens: int = 100, experts: int = 5, inner: int = 48, outer: int = 100
) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    _, expert = reference_route(torch.randn(tokens, experts, generator=generator))
    ends = torch.zeros(experts + 1, dtype=torch.int32)
    ends[1:] = torch.bincount(expert.flatten(), minlength=experts).cumsum(0)
    order = torch.argsort(expert.flatten(), stable=True) // expert.shape[1]
    x = torch.randn(tokens, inner, generator=generator)
    return x, order.int(), ends, torch.randn(experts, inner, outer, generator=generator)


def make_output_grouped_matmul(
    x: torch.Tensor, order: torch.Tensor, ends: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor]:
    return (torch.empty(len(order), weight.shape[2]),)


def reference_grouped_matmul(
    x: torch.Tensor, order: torch.Tensor, ends: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    runs = order.split(ends.diff().tolist())
    return torch.cat([x[run] @ w for run, w in zip(runs, weight, strict=True)])


def main() -> None:
    inputs = make_inputs_route(tokens=8192, experts=64)
    show("routing", route, reference_route, inputs, make_output_route(*inputs))
    inputs = make_inputs_grouped_matmul(tokens=512, experts=16, inner=512, outer=1024)
    show("grouped matmul", grouped_matmul, reference_grouped_matmul, inputs, make_output_grouped_matmul(*inputs))


if __name__ == "__main__":
    main()
