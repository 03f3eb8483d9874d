"""A LLaMA block over a prompt: normalize, attend with rotary positions, normalize, feed forward; residuals in between.

Weights and activations are bf16, sums are fp32. Every step is a kernel over tiles of the tensors between them, and the
entry only says in which order. A product walks its inner dimension in steps and finishes in place: the residual is
added, or the gate applied, before anything goes back to memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

import tilewright.language as pl

EPS, BASE = 1e-5, 10000.0
TM, TN, TK = 64, 64, 256
BQ, BK = 64, 64


@pl.jit.incore
def normalize(x: pl.Tensor, weight: pl.Tensor, row: pl.INDEX, out: pl.Out[pl.Tensor]):
    width = x.shape[1]
    rows = pl.cast(pl.load(x, [row, 0], [8, width]), pl.FP32)
    scale = pl.rsqrt(pl.row_sum(rows * rows) / width + EPS)
    scaled = pl.row_expand_mul(rows, scale) * pl.cast(pl.load(weight, [0, 0], [1, width]), pl.FP32)
    return pl.store(pl.cast(scaled, pl.BF16, mode="rint"), [row, 0], out)


@pl.jit.inline
def product(x, w, row, col):
    acc = pl.matmul(pl.load(x, [row, 0], [TM, TK]), pl.load(w, [0, col], [TK, TN]))
    for k in pl.range(TK, x.shape[1], TK):
        acc = pl.matmul_acc(acc, pl.load(x, [row, k], [TM, TK]), pl.load(w, [k, col], [TK, TN]))
    return acc


@pl.jit.incore
def linear(x: pl.Tensor, w: pl.Tensor, row: pl.INDEX, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    return pl.store(pl.cast(product(x, w, row, col), pl.BF16, mode="rint"), [row, col], out)


@pl.jit.incore
def linear_added(x: pl.Tensor, w: pl.Tensor, residual: pl.Tensor, row: pl.INDEX, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    result = product(x, w, row, col) + pl.cast(pl.load(residual, [row, col], [TM, TN]), pl.FP32)
    return pl.store(pl.cast(result, pl.BF16, mode="rint"), [row, col], out)


@pl.jit.incore
def gated(x: pl.Tensor, gate: pl.Tensor, up: pl.Tensor, row: pl.INDEX, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    opening, lifted = product(x, gate, row, col), product(x, up, row, col)
    result = opening * pl.recip(pl.exp(-opening) + 1.0) * lifted
    return pl.store(pl.cast(result, pl.BF16, mode="rint"), [row, col], out)


@pl.jit.incore
def rotate(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, row: pl.INDEX, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    half = cos.shape[1]
    first = pl.cast(pl.load(x, [row, col], [TM, half]), pl.FP32)
    second = pl.cast(pl.load(x, [row, col + half], [TM, half]), pl.FP32)
    c, s = pl.load(cos, [row, 0], [TM, half]), pl.load(sin, [row, 0], [TM, half])
    out = pl.store(pl.cast(first * c - second * s, pl.BF16, mode="rint"), [row, col], out)
    return pl.store(pl.cast(second * c + first * s, pl.BF16, mode="rint"), [row, col + half], out)


@pl.jit.incore
def attend(
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, causal: pl.Tensor, row: pl.INDEX, col: pl.INDEX, dim: int,
    out: pl.Out[pl.Tensor],
):  # fmt: skip
    queries = pl.load(q, [row, col], [BQ, dim])
    best = pl.tile.full([BQ, 1], dtype=pl.FP32, value=-1e30)
    total = pl.tile.full([BQ, 1], dtype=pl.FP32, value=0.0)
    average = pl.tile.full([BQ, dim], dtype=pl.FP32, value=0.0)
    for first in pl.range(0, row + BQ, BK):
        scores = pl.matmul(queries, pl.tile.transpose_view(pl.load(k, [first, col], [BK, dim]))) * (1 / math.sqrt(dim))
        if first == row:
            scores = scores + pl.load(causal, [0, 0], [BQ, BK])
        highest = pl.maximum(best, pl.row_max(scores))
        weights = pl.row_expand_expdif(scores, highest)
        kept = pl.exp(best - highest)
        total = total * kept + pl.row_sum(weights)
        values = pl.load(v, [first, col], [BK, dim])
        average = pl.row_expand_mul(average, kept) + pl.matmul(pl.cast(weights, pl.BF16, mode="rint"), values)
        best = highest
    return pl.store(pl.cast(pl.row_expand_div(average, total), pl.BF16, mode="rint"), [row, col], out)


@pl.jit
def llama_block(
    x: pl.Tensor, norm: pl.Tensor, wq: pl.Tensor, wk: pl.Tensor, wv: pl.Tensor, wo: pl.Tensor, ffn_norm: pl.Tensor,
    gate: pl.Tensor, up: pl.Tensor, down: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, causal: pl.Tensor,
    heads: int, out: pl.Out[pl.Tensor],
):  # fmt: skip
    tokens, hidden = x.shape
    dim, inner = hidden // heads, gate.shape[1]
    normed = pl.create_tensor([tokens, hidden], dtype=pl.BF16)
    q = pl.create_tensor([tokens, hidden], dtype=pl.BF16)
    k = pl.create_tensor([tokens, hidden], dtype=pl.BF16)
    v = pl.create_tensor([tokens, hidden], dtype=pl.BF16)
    q_rotated = pl.create_tensor([tokens, hidden], dtype=pl.BF16)
    k_rotated = pl.create_tensor([tokens, hidden], dtype=pl.BF16)
    attended = pl.create_tensor([tokens, hidden], dtype=pl.BF16)
    after = pl.create_tensor([tokens, hidden], dtype=pl.BF16)
    opened = pl.create_tensor([tokens, inner], dtype=pl.BF16)
    for row in pl.parallel(0, tokens, 8):
        normed = normalize(x, norm, row, normed)
    for col in pl.parallel(0, hidden, TN):
        for row in pl.parallel(0, tokens, TM):
            q = linear(normed, wq, row, col, q)
            k = linear(normed, wk, row, col, k)
            v = linear(normed, wv, row, col, v)
    for col in pl.parallel(0, hidden, dim):
        for row in pl.parallel(0, tokens, TM):
            q_rotated = rotate(q, cos, sin, row, col, q_rotated)
            k_rotated = rotate(k, cos, sin, row, col, k_rotated)
    for col in pl.parallel(0, hidden, dim):
        for row in pl.parallel(0, tokens, BQ):
            attended = attend(q_rotated, k_rotated, v, causal, row, col, dim, attended)
    for col in pl.parallel(0, hidden, TN):
        for row in pl.parallel(0, tokens, TM):
            after = linear_added(attended, wo, x, row, col, after)
    for row in pl.parallel(0, tokens, 8):
        normed = normalize(after, ffn_norm, row, normed)
    for col in pl.parallel(0, inner, TN):
        for row in pl.parallel(0, tokens, TM):
            opened = gated(normed, gate, up, row, col, opened)
    for col in pl.parallel(0, hidden, TN):
        for row in pl.parallel(0, tokens, TM):
            out = linear_added(opened, down, after, row, col, out)
    return out


@dataclass(frozen=True)
class Sizes:
    """A model's sizes, and how long its prompt is."""

    tokens: int
    hidden: int
    heads: int
    inner: int


SMALL = Sizes(tokens=128, hidden=256, heads=4, inner=384)
LLAMA2_7B = Sizes(tokens=256, hidden=4096, heads=32, inner=11008)


def make_inputs(seed: int = 0, sizes: Sizes = SMALL) -> tuple[torch.Tensor | int, ...]:
    """Return a prompt, made-up weights, the angles of positions, and what hides the future within a block."""
    generator = torch.Generator().manual_seed(seed)
    hidden, inner = sizes.hidden, sizes.inner

    def weights(rows: int, cols: int) -> torch.Tensor:
        return (torch.randn(rows, cols, generator=generator) / rows**0.5).bfloat16()

    x = torch.randn(sizes.tokens, hidden, generator=generator).bfloat16()
    norm, ffn_norm = ((torch.rand(1, hidden, generator=generator) + 0.5).bfloat16() for _ in range(2))
    attention = [weights(hidden, hidden) for _ in range(4)]
    gate, up, down = weights(hidden, inner), weights(hidden, inner), weights(inner, hidden)
    half = hidden // sizes.heads // 2
    angles = torch.arange(sizes.tokens)[:, None] * BASE ** (-torch.arange(half) / half)
    causal = torch.full((BQ, BK), -1e30).triu(1)
    return x, norm, *attention, ffn_norm, gate, up, down, angles.cos(), angles.sin(), causal, sizes.heads


def reference(
    x: torch.Tensor, norm: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor, wo: torch.Tensor,
    ffn_norm: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor, cos: torch.Tensor,
    sin: torch.Tensor, causal: torch.Tensor, heads: int,
) -> torch.Tensor:  # fmt: skip
    """Return the same in torch's own functions, in bf16 as well."""
    tokens, hidden = x.shape
    normed = torch.nn.functional.rms_norm(x, (hidden,), norm[0], EPS)
    q, k, v = ((normed @ w).view(tokens, heads, -1).transpose(0, 1) for w in (wq, wk, wv))
    q, k = _rotated(q, cos, sin), _rotated(k, cos, sin)
    seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    after = x + seen.transpose(0, 1).reshape(tokens, hidden) @ wo
    normed = torch.nn.functional.rms_norm(after, (hidden,), ffn_norm[0], EPS)
    return after + (torch.nn.functional.silu(normed @ gate) * (normed @ up)) @ down


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).bfloat16()


def main() -> None:
    inputs = make_inputs()
    out = torch.empty_like(inputs[0])
    llama_block(*inputs, out)
    expected = reference(*inputs)
    torch.testing.assert_close(out, expected, rtol=5e-2, atol=5e-2)
    error = (out - expected).abs().max()
    print(f"llama_block: {SMALL.tokens} tokens of {SMALL.hidden} in {SMALL.heads} heads, max error {error:.1e} in bf16")


if __name__ == "__main__":
    main()
