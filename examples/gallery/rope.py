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
    for head in pl.parallel(heads):
        for row in pl.parallel(0, seq, ROWS):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [head, row, 0], [1, ROWS, dim])
                a, b = t[..., 0::2], t[..., 1::2]
                c, s = pl.load(cos, [0, row, 0], [1, ROWS, dim // 2]), pl.load(sin, [0, row, 0], [1, ROWS, dim // 2])
                out[head : head + 1, row : row + ROWS, 0::2] = a * c - b * s
                out[head : head + 1, row : row + ROWS, 1::2] = b * c + a * s
    return out
