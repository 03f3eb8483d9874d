"""Rotary positions, both ways: pairs that lie half a head apart (LLaMA), and pairs of neighbours (GPT-J).

A pair (a, b) at position p turns by an angle that falls with its place in the head: (a cos - b sin, b cos + a sin).
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

ROWS = 64


@pl.jit
def rope_halves(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, out: pl.Out[pl.Tensor]):
    heads, seq, dim = x.shape
    half = dim // 2
    for head in pl.parallel(heads):
        for row in pl.parallel(0, seq, ROWS):
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.load(x, [head, row, 0], [1, ROWS, half])
                b = pl.load(x, [head, row, half], [1, ROWS, half])
                c, s = pl.load(cos, [0, row, 0], [1, ROWS, half]), pl.load(sin, [0, row, 0], [1, ROWS, half])
                pl.store(a * c - b * s, [head, row, 0], out)
                pl.store(b * c + a * s, [head, row, half], out)
    return out


@pl.jit
def rope_neighbours(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, out: pl.Out[pl.Tensor]):
    heads, seq, dim = x.shape
    half = dim // 2
    for head in pl.parallel(heads):
        for row in pl.parallel(0, seq, ROWS):
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.load(x[..., 0::2], [head, row, 0], [1, ROWS, half])
                b = pl.load(x[..., 1::2], [head, row, 0], [1, ROWS, half])
                c, s = pl.load(cos, [0, row, 0], [1, ROWS, half]), pl.load(sin, [0, row, 0], [1, ROWS, half])
                pl.store(a * c - b * s, [head, row, 0], out[..., 0::2])
                pl.store(b * c + a * s, [head, row, 0], out[..., 1::2])
    return out


def make_inputs(seed: int = 0, heads: int = 3, length: int = 100, dim: int = 32) -> tuple[torch.Tensor, ...]:
    x = torch.randn(heads, length, dim, generator=torch.Generator().manual_seed(seed))
    angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(dim // 2) / (dim // 2))
    return x, angles.cos()[None], angles.sin()[None]


def make_output(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.empty_like(x),)


def reference_rope_halves(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def reference_rope_neighbours(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)


def main() -> None:
    inputs = make_inputs(heads=32, length=2048, dim=128)
    show("rope, halves", rope_halves, reference_rope_halves, inputs, make_output(*inputs))
    show("rope, neighbours", rope_neighbours, reference_rope_neighbours, inputs, make_output(*inputs))


if __name__ == "__main__":
    main()
