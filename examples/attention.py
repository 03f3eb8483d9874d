"""Attention that never holds the whole score matrix: softmax(q @ k.T / sqrt(d)) @ v, one block of keys at a time.

Three values are carried along the keys: `m`, the largest score of each row so far; `l`, the sum of
exp(score - m); and `o`, the weighted sum of values. When a block raises the maximum, what was
summed before is scaled down to the new one; dividing `o` by `l` at the end makes it an average.
"""

import torch

import tilewright.language as pl

BQ, BK = 64, 32


@pl.jit.incore
def attend(
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, seq: pl.INDEX, query: pl.INDEX, key: pl.INDEX, out: pl.Out[pl.Tensor]
):
    dim = q.shape[1]
    queries = pl.load(q, [query, 0], [BQ, dim])
    m0 = pl.tile.full([BQ, 1], dtype=pl.FP32, value=-1e30)
    l0 = pl.tile.full([BQ, 1], dtype=pl.FP32, value=0.0)
    o0 = pl.tile.full([BQ, dim], dtype=pl.FP32, value=0.0)
    for j, (m, l, o) in pl.range(key, key + seq, BK, init_values=(m0, l0, o0)):  # noqa: E741
        keys = pl.load(k, [j, 0], [BK, dim])
        values = pl.load(v, [j, 0], [BK, dim])
        scores = pl.matmul(queries, pl.tile.transpose_view(keys)) * dim**-0.5
        m_new = pl.maximum(m, pl.row_max(scores))
        p = pl.row_expand_expdif(scores, m_new)
        rescale = pl.exp(m - m_new)
        l_new = l * rescale + pl.row_sum(p)
        o_new = pl.row_expand_mul(o, rescale) + pl.matmul(pl.cast(p, q.dtype, mode="rint"), values)
        m_end, l_end, o_end = pl.yield_(m_new, l_new, o_new)
    average = pl.row_expand_div(o_end, l_end)
    return pl.store(pl.cast(average, q.dtype, mode="rint"), [query, 0], out)


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, heads: pl.INDEX, out: pl.Out[pl.Tensor]):
    seq = q.shape[0] // heads
    for head in pl.parallel(heads):
        for block in pl.parallel(0, seq, BQ):
            out = attend(q, k, v, seq, head * seq + block, head * seq, out)
    return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(2 * 128, 64, generator=generator).half() for _ in range(3))
    return q, k, v, 2


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
    split = (x.float().view(heads, -1, x.shape[1]) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(*split).view(q.shape).half()


def main() -> None:
    inputs = make_inputs()
    out, expected = attention(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected, rtol=1e-2, atol=1e-3)
    error = (out - expected).abs().max()
    print(f"attention: 2 heads of 128 x 64 in blocks of {BQ} x {BK}, max error {error:.1e} in fp16")


if __name__ == "__main__":
    main()
