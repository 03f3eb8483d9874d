"""attention: softmax(q @ k.T / sqrt(d)) @ v, one block of keys at a time; examples/attention.py explains it."""

import torch
from contenders import inductor, ours
from contest import EAGER, INDUCTOR, OURS, Contest, Field, Work
from memory import output

import tilewright.language as pl
from tilewright.core.program import Program

HEADS, SEQ, DIM = 8, 1024, 64
QUERIES, KEYS = 128, 256


def program(heads: int = HEADS, seq: int = SEQ, dim: int = DIM, bq: int = QUERIES, bk: int = KEYS) -> Program:
    Heads = pl.Tensor[[heads * seq, dim], pl.FP32]
    scale = dim**-0.5

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
            queries = pl.load(q, [first_query, 0], [bq, dim]) * scale
            m0 = pl.tile.full([bq, 1], dtype=pl.FP32, value=-1e30)
            l0 = pl.tile.full([bq, 1], dtype=pl.FP32, value=0.0)
            o0 = pl.tile.full([bq, dim], dtype=pl.FP32, value=0.0)
            for key, (m, l, o) in pl.range(first_key, first_key + seq, bk, init_values=(m0, l0, o0)):  # noqa: E741
                keys = pl.load(k, [key, 0], [bk, dim])
                values = pl.load(v, [key, 0], [bk, dim])
                scores = pl.matmul(queries, pl.tile.transpose_view(keys))
                m_new = pl.maximum(m, pl.row_max(scores))
                p = pl.row_expand_expdif(scores, m_new)
                rescale = pl.exp(m - m_new)
                l_new = l * rescale + pl.row_sum(p)
                o_new = pl.matmul_acc(pl.row_expand_mul(o, rescale), p, values)
                m_end, l_end, o_end = pl.yield_(m_new, l_new, o_new)
            return pl.store(pl.row_expand_div(o_end, l_end), [first_query, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, q: Heads, k: Heads, v: Heads, out: pl.Out[Heads]) -> Heads:
            for head in pl.parallel(heads):
                for block in pl.parallel(0, seq, bq):
                    out = self.attend(q, k, v, head * seq + block, head * seq, out)
            return out

    return Attention


def sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    heads = (x.view(1, HEADS, SEQ, DIM) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(*heads).view(HEADS * SEQ, DIM)


def enter() -> Field:
    q, k, v = torch.randn(3, HEADS * SEQ, DIM)
    return Field(
        sdpa(q.double(), k.double(), v.double()).float(),
        {
            OURS: ours(program(), q, k, v, out=output(HEADS * SEQ, DIM)),
            EAGER: lambda: sdpa(q, k, v),
            INDUCTOR: inductor(sdpa, q, k, v),
        },
    )


NAME = f"attention {HEADS}x{SEQ}x{DIM}"
NOTE = "eager is `F.scaled_dot_product_attention`; it has no `out=`, but its pages are kept."
ROWS = (Contest(NAME, enter, Work(flops=4 * HEADS * SEQ * SEQ * DIM), target=0.3, note=NOTE),)
