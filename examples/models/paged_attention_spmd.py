"""Paged attention as one kernel on many blocks: each block takes one sequence and one key head, page by page.

Nothing goes through memory between the steps: the running maximum, the sum and the average stay in tiles, and the block
table is read inside the kernel. The last page is loaded as far as the sequence goes; what is missing of its scores is
filled with the least number, which weighs nothing.
"""

import math
from functools import partial

import torch
from paging import SMALL, attended, make_inputs

import tilewright.language as pl

KV, GROUP, DIM, PAGE = SMALL.kv_heads, SMALL.group, SMALL.dim, SMALL.page
SCALE = 1 / math.sqrt(DIM)


@pl.jit
def paged_attention_spmd(
    q: pl.Tensor,
    k: pl.Tensor,
    v: pl.Tensor,
    table: pl.Tensor,
    lengths: pl.Tensor,
    out: pl.Out[pl.Tensor[[SMALL.batch * SMALL.heads, DIM], pl.FP32]],
):
    for block in pl.spmd(SMALL.batch * KV, name_hint="attend"):
        sequence, head = block // KV, block % KV
        queries = pl.load(q, [block * GROUP, 0], [GROUP, DIM])
        length = pl.cast(pl.read(lengths, [sequence]), pl.INDEX)
        best = pl.tile.full([GROUP, 1], dtype=pl.FP32, value=-1e30)
        total = pl.tile.full([GROUP, 1], dtype=pl.FP32, value=0.0)
        average = pl.tile.full([GROUP, DIM], dtype=pl.FP32, value=0.0)
        for j in pl.range((length + PAGE - 1) // PAGE):
            page = pl.cast(pl.read(table, [sequence, j]), pl.INDEX)
            first = (page * KV + head) * PAGE
            tokens = pl.min(PAGE, length - j * PAGE)
            keys = pl.load(k, [first, 0], [PAGE, DIM], valid_shape=[tokens, DIM])
            values = pl.load(v, [first, 0], [PAGE, DIM], valid_shape=[tokens, DIM])
            scores = pl.matmul(queries, pl.tile.transpose_view(keys)) * SCALE
            highest = pl.maximum(best, pl.row_max(scores))
            weights = pl.row_expand_expdif(scores, highest)
            kept = pl.exp(best - highest)
            total = total * kept + pl.row_sum(weights)
            average = pl.row_expand_mul(average, kept) + pl.matmul(pl.cast(weights, pl.BF16, mode="rint"), values)
            best = highest
        pl.store(pl.row_expand_div(average, total), [block * GROUP, 0], out)
    return out


reference = partial(attended, SMALL)


def main() -> None:
    inputs = make_inputs()
    out, expected = paged_attention_spmd(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=1e-2)
    error = (out - expected).abs().max()
    print(f"paged_attention_spmd: {SMALL.batch * KV} blocks, each the pages of one sequence, max error {error:.1e}")


if __name__ == "__main__":
    main()
