"""Attention that never holds the whole score matrix: softmax(q @ k.T / sqrt(d)) @ v, one block of keys at a time.

Three values are carried along the keys: `m`, the largest score of each row so far; `l`, the sum of
exp(score - m); and `o`, the weighted sum of values. When a block raises the maximum, what was
summed before is scaled down to the new one; dividing `o` by `l` at the end makes it an average.
"""

import torch

import tilewright.language as pl
from tilewright import ir

HEADS, SEQ, DIM = 2, 128, 64
BQ, BK = 64, 32
SCALE = DIM**-0.5

Heads = pl.Tensor[[HEADS * SEQ, DIM], pl.FP16]


@pl.program
class Attention:
    @pl.function(type=pl.FunctionType.InCore)
    def attend(
        self,
        q: Heads,
        k: Heads,
        v: Heads,
        first_query: pl.Scalar[pl.INDEX],
        first_key: pl.Scalar[pl.INDEX],
        out: pl.Out[Heads],
    ) -> Heads:
        queries = pl.load(q, [first_query, 0], [BQ, DIM])
        m0 = pl.tile.full([BQ, 1], dtype=pl.FP32, value=-1e30)
        l0 = pl.tile.full([BQ, 1], dtype=pl.FP32, value=0.0)
        o0 = pl.tile.full([BQ, DIM], dtype=pl.FP32, value=0.0)
        for key, (m, l, o) in pl.range(first_key, first_key + SEQ, BK, init_values=(m0, l0, o0)):  # noqa: E741
            keys = pl.load(k, [key, 0], [BK, DIM])
            values = pl.load(v, [key, 0], [BK, DIM])
            scores = pl.matmul(queries, pl.tile.transpose_view(keys)) * SCALE
            m_new = pl.maximum(m, pl.row_max(scores))
            p = pl.row_expand_expdif(scores, m_new)
            rescale = pl.exp(m - m_new)
            l_new = l * rescale + pl.row_sum(p)
            o_new = pl.row_expand_mul(o, rescale) + pl.matmul(pl.cast(p, pl.FP16, mode="rint"), values)
            m_end, l_end, o_end = pl.yield_(m_new, l_new, o_new)
        average = pl.row_expand_div(o_end, l_end)
        return pl.store(pl.cast(average, pl.FP16, mode="rint"), [first_query, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, q: Heads, k: Heads, v: Heads, out: pl.Out[Heads]) -> Heads:
        for head in pl.parallel(HEADS):
            for block in pl.parallel(0, SEQ, BQ):
                out = self.attend(q, k, v, head * SEQ + block, head * SEQ, out)
        return out


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(HEADS * SEQ, DIM, generator=generator).half() for _ in range(3))


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    heads = (x.float().view(HEADS, SEQ, DIM) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(*heads).view(HEADS * SEQ, DIM).half()


def main() -> None:
    inputs = make_inputs()
    out, expected = ir.compile(Attention)(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected, rtol=1e-2, atol=1e-3)
    error = (out - expected).abs().max()
    print(f"attention: {HEADS} heads of {SEQ} x {DIM} in blocks of {BQ} x {BK}, max error {error:.1e} in fp16")


if __name__ == "__main__":
    main()
