"""One decoding step of a Qwen3 layer for a batch of sequences: each adds a token to its cache and attends to all of it.

What tells it from LLaMA: query heads share key heads, and queries and keys are normalized head by head before they are
rotated. A step reads every weight and every cached row once, so memory decides how long it takes. The caches are
`InOut`: the new key and value are written where the sequence ends, then attention walks it in blocks of tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

import tilewright.language as pl

EPS, BASE = 1e-6, 1_000_000.0
TN, TK, BLOCK = 64, 256, 64


@pl.jit.incore
def normalize(x: pl.Tensor, weight: pl.Tensor, row: pl.INDEX, out: pl.Out[pl.Tensor]):
    width = x.shape[1]
    values = pl.cast(pl.load(x, [row, 0], [1, width]), pl.FP32)
    scale = pl.rsqrt(pl.row_sum(values * values) / width + EPS)
    scaled = pl.row_expand_mul(values, scale) * pl.cast(pl.load(weight, [0, 0], [1, width]), pl.FP32)
    return pl.store(pl.cast(scaled, pl.BF16, mode="rint"), [row, 0], out)


@pl.jit.inline
def product(x, w, col):
    batch = x.shape[0]
    acc = pl.matmul(pl.load(x, [0, 0], [batch, TK]), pl.load(w, [0, col], [TK, TN]))
    for k in pl.range(TK, x.shape[1], TK):
        acc = pl.matmul_acc(acc, pl.load(x, [0, k], [batch, TK]), pl.load(w, [k, col], [TK, TN]))
    return acc


@pl.jit.incore
def linear(x: pl.Tensor, w: pl.Tensor, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    return pl.store(pl.cast(product(x, w, col), pl.BF16, mode="rint"), [0, col], out)


@pl.jit.incore
def linear_added(x: pl.Tensor, w: pl.Tensor, residual: pl.Tensor, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    result = product(x, w, col) + pl.cast(pl.load(residual, [0, col], [x.shape[0], TN]), pl.FP32)
    return pl.store(pl.cast(result, pl.BF16, mode="rint"), [0, col], out)


@pl.jit.incore
def gated(x: pl.Tensor, gate: pl.Tensor, up: pl.Tensor, col: pl.INDEX, out: pl.Out[pl.Tensor]):
    opening, lifted = product(x, gate, col), product(x, up, col)
    result = opening * pl.recip(pl.exp(-opening) + 1.0) * lifted
    return pl.store(pl.cast(result, pl.BF16, mode="rint"), [0, col], out)


@pl.jit.inline
def rotated(heads, weight, cos, sin, row):
    """Return the two halves of heads, normalized and turned by the angle of their position."""
    rows, dim = heads.shape
    half = dim // 2
    values = pl.cast(heads, pl.FP32)
    scale = pl.rsqrt(pl.row_sum(values * values) / dim + EPS)
    normed = pl.row_expand_mul(values, scale) * pl.cast(pl.load(weight, [0, 0], [1, dim]), pl.FP32)
    normed = pl.cast(pl.cast(normed, pl.BF16, mode="rint"), pl.FP32)
    c, s = pl.load(cos, [row, 0], [1, half]), pl.load(sin, [row, 0], [1, half])
    first, second = pl.slice(normed, [rows, half], [0, 0]), pl.slice(normed, [rows, half], [0, half])
    one, other = first * c - second * s, second * c + first * s
    return pl.cast(pl.concat(one, other), pl.BF16, mode="rint")


@pl.jit.incore
def attend(
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, q_norm: pl.Tensor, k_norm: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor,
    lengths: pl.Tensor, sequence: pl.INDEX, head: pl.INDEX, heads: int,
    keys: pl.InOut[pl.Tensor], values: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor],
):  # fmt: skip
    batch, dim = q.shape[0], q_norm.shape[1]
    kv_heads = k.shape[1] // dim
    group, room = heads // kv_heads, keys.shape[0] // (batch * kv_heads)
    position = pl.cast(pl.read(lengths, [sequence]), pl.INDEX)
    first = (sequence * kv_heads + head) * room
    key = rotated(pl.load(k, [sequence, head * dim], [1, dim]), k_norm, cos, sin, position)
    keys = pl.store(key, [first + position, 0], keys)
    values = pl.store(pl.load(v, [sequence, head * dim], [1, dim]), [first + position, 0], values)
    together = pl.reshape(pl.load(q, [sequence, head * group * dim], [1, group * dim]), [group, dim])
    queries = rotated(together, q_norm, cos, sin, position)
    best = pl.tile.full([group, 1], dtype=pl.FP32, value=-1e30)
    total = pl.tile.full([group, 1], dtype=pl.FP32, value=0.0)
    average = pl.tile.full([group, dim], dtype=pl.FP32, value=0.0)
    for token in pl.range(0, position + 1, BLOCK):
        seen = pl.min(BLOCK, position + 1 - token)
        some_keys = pl.load(keys, [first + token, 0], [BLOCK, dim], valid_shape=[seen, dim])
        some_values = pl.load(values, [first + token, 0], [BLOCK, dim], valid_shape=[seen, dim])
        scores = pl.matmul(queries, pl.tile.transpose_view(some_keys)) * (1 / math.sqrt(dim))
        highest = pl.maximum(best, pl.row_max(scores))
        weights = pl.row_expand_expdif(scores, highest)
        kept = pl.exp(best - highest)
        total = total * kept + pl.row_sum(weights)
        average = pl.row_expand_mul(average, kept) + pl.matmul(pl.cast(weights, pl.BF16, mode="rint"), some_values)
        best = highest
    result = pl.cast(pl.row_expand_div(average, total), pl.BF16, mode="rint")
    out = pl.store(pl.reshape(result, [1, group * dim]), [sequence, head * group * dim], out)
    return keys, values, out


@pl.jit
def qwen3_decode(
    x: pl.Tensor, norm: pl.Tensor, wq: pl.Tensor, wk: pl.Tensor, wv: pl.Tensor, q_norm: pl.Tensor, k_norm: pl.Tensor,
    wo: pl.Tensor, ffn_norm: pl.Tensor, gate: pl.Tensor, up: pl.Tensor, down: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor,
    lengths: pl.Tensor, keys: pl.InOut[pl.Tensor], values: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor],
):  # fmt: skip
    batch, hidden = x.shape
    dim, inner = q_norm.shape[1], gate.shape[1]
    heads, kv_heads = wq.shape[1] // dim, wk.shape[1] // dim
    normed = pl.create_tensor([batch, hidden], dtype=pl.BF16)
    q = pl.create_tensor([batch, heads * dim], dtype=pl.BF16)
    k = pl.create_tensor([batch, kv_heads * dim], dtype=pl.BF16)
    v = pl.create_tensor([batch, kv_heads * dim], dtype=pl.BF16)
    attended = pl.create_tensor([batch, heads * dim], dtype=pl.BF16)
    after = pl.create_tensor([batch, hidden], dtype=pl.BF16)
    opened = pl.create_tensor([batch, inner], dtype=pl.BF16)
    for row in pl.parallel(batch):
        normed = normalize(x, norm, row, normed)
    for col in pl.parallel(0, heads * dim, TN):
        q = linear(normed, wq, col, q)
    for col in pl.parallel(0, kv_heads * dim, TN):
        k = linear(normed, wk, col, k)
        v = linear(normed, wv, col, v)
    for sequence in pl.parallel(batch):
        for head in pl.parallel(kv_heads):
            keys, values, attended = attend(
                q, k, v, q_norm, k_norm, cos, sin, lengths, sequence, head, heads, keys, values, attended
            )
    for col in pl.parallel(0, hidden, TN):
        after = linear_added(attended, wo, x, col, after)
    for row in pl.parallel(batch):
        normed = normalize(after, ffn_norm, row, normed)
    for col in pl.parallel(0, inner, TN):
        opened = gated(normed, gate, up, col, opened)
    for col in pl.parallel(0, hidden, TN):
        out = linear_added(opened, down, after, col, out)
    return out


@dataclass(frozen=True)
class Sizes:
    """A model's sizes, how many sequences are decoded at once, and how long they may get."""

    batch: int
    hidden: int
    heads: int
    kv_heads: int
    dim: int
    inner: int
    room: int


SMALL = Sizes(batch=3, hidden=256, heads=8, kv_heads=2, dim=32, inner=384, room=160)
QWEN3_8B = Sizes(batch=16, hidden=4096, heads=32, kv_heads=8, dim=128, inner=12288, room=2048)

Inputs = tuple[torch.Tensor, ...]


def make_inputs(seed: int = 0, sizes: Sizes = SMALL) -> Inputs:
    """Return tokens, made-up weights, the angles of positions, how long each sequence is, and its cache."""
    generator = torch.Generator().manual_seed(seed)
    hidden, inner, dim = sizes.hidden, sizes.inner, sizes.dim

    def weights(rows: int, cols: int) -> torch.Tensor:
        return (torch.randn(rows, cols, generator=generator) / rows**0.5).bfloat16()

    def scales(width: int) -> torch.Tensor:
        return (torch.rand(1, width, generator=generator) + 0.5).bfloat16()

    x = torch.randn(sizes.batch, hidden, generator=generator).bfloat16()
    wq, wo = weights(hidden, sizes.heads * dim), weights(sizes.heads * dim, hidden)
    wk, wv = (weights(hidden, sizes.kv_heads * dim) for _ in range(2))
    gate, up, down = weights(hidden, inner), weights(hidden, inner), weights(inner, hidden)
    angles = torch.arange(sizes.room)[:, None] * BASE ** (-torch.arange(dim // 2) / (dim // 2))
    lengths = torch.randint(1, sizes.room, (sizes.batch,), generator=generator).int()
    rows = sizes.batch * sizes.kv_heads * sizes.room
    keys, values = (torch.randn(rows, dim, generator=generator).bfloat16() for _ in range(2))
    return (
        x, scales(hidden), wq, wk, wv, scales(dim), scales(dim), wo, scales(hidden), gate, up, down, angles.cos(),
        angles.sin(), lengths, keys, values,
    )  # fmt: skip


def reference(
    x: torch.Tensor, norm: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor, q_norm: torch.Tensor,
    k_norm: torch.Tensor, wo: torch.Tensor, ffn_norm: torch.Tensor, gate: torch.Tensor, up: torch.Tensor,
    down: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, lengths: torch.Tensor, keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Return the same in torch's own functions, the caches growing as well."""
    batch, hidden = x.shape
    dim = q_norm.shape[1]
    normed = torch.nn.functional.rms_norm(x, (hidden,), norm[0], EPS)
    q, k, v = ((normed @ w).view(batch, -1, dim) for w in (wq, wk, wv))
    caches = [cache.view(batch, k.shape[1], -1, dim) for cache in (keys, values)]
    seen: list[torch.Tensor] = []
    for b, length in enumerate(lengths.tolist()):
        queries = _rotated(q[b], q_norm, cos[length], sin[length])
        caches[0][b, :, length] = _rotated(k[b], k_norm, cos[length], sin[length])
        caches[1][b, :, length] = v[b]
        past = (cache[b : b + 1, :, : length + 1] for cache in caches)
        seen.append(
            torch.nn.functional.scaled_dot_product_attention(queries[None, :, None], *past, enable_gqa=True).view(1, -1)
        )
    after = x + torch.cat(seen) @ wo
    normed = torch.nn.functional.rms_norm(after, (hidden,), ffn_norm[0], EPS)
    return after + (torch.nn.functional.silu(normed @ gate) * (normed @ up)) @ down


def _rotated(heads: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    normed = torch.nn.functional.rms_norm(heads.float(), (heads.shape[-1],), weight[0].float(), EPS).bfloat16()
    first, second = normed.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).bfloat16()


def copied(inputs: Inputs) -> Inputs:
    """Return inputs whose caches are others: a step changes them."""
    return (*inputs[:-2], *(cache.clone() for cache in inputs[-2:]))


def main() -> None:
    inputs = make_inputs()
    ours, theirs = copied(inputs), copied(inputs)
    out = torch.empty_like(inputs[0])
    qwen3_decode(*ours, out)
    expected = reference(*theirs)
    torch.testing.assert_close(out, expected, rtol=5e-2, atol=5e-2)
    torch.testing.assert_close(ours[-2:], theirs[-2:], rtol=5e-2, atol=5e-2)
    error = (out - expected).abs().max()
    print(f"qwen3_decode: {SMALL.batch} sequences a token further, {SMALL.heads} heads, max error {error:.1e} in bf16")


if __name__ == "__main__":
    main()
