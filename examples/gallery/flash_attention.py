"""Attention as models call it: [batch, heads, length, dim], causal or not, several query heads for each key head.

Any length will do, of queries too: what lies beyond the last row or key is not there, so it takes no part in maxima and
sums, and is not stored. Keys after a causal query are hidden by a mask, and blocks that hold nothing else are not
visited at all.
"""

from __future__ import annotations

import math

import torch
from timing import show

import tilewright.language as pl

BQ, BK = 64, 64


@pl.jit.incore
def attend(
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, batch: pl.INDEX, head: pl.INDEX, row: pl.INDEX, causal: bool,
    out: pl.Out[pl.Tensor],
):  # fmt: skip
    length, dim = k.shape[-2:]
    group = head // (q.shape[1] // k.shape[1])
    place = pl.iota([BQ, 1], axis=0) + row
    queries = pl.load(q[batch, head], [row, 0], [BQ, dim]) * (1 / math.sqrt(dim))
    best = pl.tile.full([BQ, 1], dtype=pl.FP32, value=-1e30)
    total = pl.tile.full([BQ, 1], dtype=pl.FP32, value=0.0)
    average = pl.tile.full([BQ, dim], dtype=pl.FP32, value=0.0)
    for first in pl.range(0, pl.min(row + BQ, length) if causal else length, BK):
        scores = queries @ pl.load(k[batch, group], [first, 0], [BK, dim]).T
        if causal:
            scores = pl.where(pl.arange(first, first + BK) <= place, scores, -math.inf)
        highest = pl.maximum(best, pl.max(scores, axis=-1, keepdims=True))
        weights, kept = pl.exp(scores - highest), pl.exp(best - highest)
        total = total * kept + pl.sum(weights, axis=-1, keepdims=True)
        average = average * kept + weights @ pl.load(v[batch, group], [first, 0], [BK, dim])
        best = highest
    return pl.store(average / total, [batch, head, row, 0], out)


@pl.jit
def flash_attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, causal: bool, out: pl.Out[pl.Tensor]):
    for batch in pl.parallel(q.shape[0]):
        for head in pl.parallel(q.shape[1]):
            for row in pl.parallel(0, q.shape[2], BQ):
                out = attend(q, k, v, batch, head, row, causal, out)
    return out


def make_inputs(seed: int = 0, length: int = 150, heads: int = 4, groups: int = 2, dim: int = 32):
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(2, heads, length, dim, generator=generator)
    k, v = (torch.randn(2, groups, length, dim, generator=generator) for _ in range(2))
    return q, k, v, True


def make_output(q: torch.Tensor, *others: object) -> tuple[torch.Tensor]:
    return (torch.empty_like(q),)


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)


def main() -> None:
    inputs = make_inputs(length=1000, heads=8, dim=64)
    show("flash attention", flash_attention, reference, inputs, make_output(*inputs))


if __name__ == "__main__":
    main()
