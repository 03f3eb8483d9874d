"""Paged attention for decoding, as a graph of small kernels: one query per sequence, keys and values in pages.

The orchestration reads the block table and walks the pages of every sequence; four kernels do the work of a page.
`scores` multiplies queries and keys, `weigh` turns scores into weights with their maximum and sum, `values_of`
multiplies weights and values, and `update` folds a page into what the pages before gave. The last page of a sequence is
shorter: `weigh` is handed a view of the scores that is as wide as there are tokens, and pads the rest.
"""

import math
from functools import partial

import torch
from paging import SMALL, Sizes, attended, make_inputs

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program


def paged_attention(sizes: Sizes) -> Program:
    """Return the program for a model's sizes."""
    GROUP, DIM, PAGE = sizes.group, sizes.dim, sizes.page
    KV, WIDTH, BATCH = sizes.kv_heads, sizes.table_width, sizes.batch
    SCALE = 1 / math.sqrt(DIM)

    Queries = pl.Tensor[[BATCH * sizes.heads, DIM], pl.BF16]
    Cache = pl.Tensor[[sizes.cache_rows, DIM], pl.BF16]
    Page = pl.Tensor[[PAGE, DIM], pl.BF16]
    Heads = pl.Tensor[[GROUP, DIM], pl.BF16]
    Scores = pl.Tensor[[GROUP, PAGE], pl.FP32]
    Weights = pl.Tensor[[GROUP, PAGE], pl.BF16]
    Average = pl.Tensor[[GROUP, DIM], pl.FP32]
    Column = pl.Tensor[[GROUP, 1], pl.FP32]
    Result = pl.Tensor[[BATCH * sizes.heads, DIM], pl.FP32]

    @pl.program
    class PagedAttention:
        @pl.function(type=pl.FunctionType.InCore)
        def scores(self, q: Heads, k: Page, s: pl.Out[Scores]) -> Scores:
            queries = pl.load(q, [0, 0], [GROUP, DIM])
            keys = pl.load(k, [0, 0], [PAGE, DIM])
            return pl.store(pl.matmul(queries, pl.tile.transpose_view(keys)), [0, 0], s)

        @pl.function(type=pl.FunctionType.InCore)
        def weigh(
            self, s: Scores, w: pl.Out[Weights], top: pl.Out[Column], total: pl.Out[Column]
        ) -> pl.Tuple[Weights, Column, Column]:
            scores = pl.fillpad(pl.load(s, [0, 0], [GROUP, PAGE]), pad_value=pl.PadValue.min) * SCALE
            highest = pl.row_max(scores)
            weights = pl.cast(pl.row_expand_expdif(scores, highest), pl.BF16)
            w = pl.store(weights, [0, 0], w)
            top = pl.store(highest, [0, 0], top)
            total = pl.store(pl.row_sum(pl.cast(weights, pl.FP32)), [0, 0], total)
            return w, top, total

        @pl.function(type=pl.FunctionType.InCore)
        def values_of(self, w: Weights, v: Page, average: pl.Out[Average]) -> Average:
            weights = pl.load(w, [0, 0], [GROUP, PAGE])
            values = pl.load(v, [0, 0], [PAGE, DIM])
            return pl.store(pl.matmul(weights, values), [0, 0], average)

        @pl.function(type=pl.FunctionType.InCore)
        def start(
            self, best: pl.Out[Column], total: pl.Out[Column], average: pl.Out[Average]
        ) -> pl.Tuple[Column, Column, Average]:
            best = pl.store(pl.tile.full([GROUP, 1], dtype=pl.FP32, value=-1e30), [0, 0], best)
            total = pl.store(pl.tile.full([GROUP, 1], dtype=pl.FP32, value=0.0), [0, 0], total)
            average = pl.store(pl.tile.full([GROUP, DIM], dtype=pl.FP32, value=0.0), [0, 0], average)
            return best, total, average

        @pl.function(type=pl.FunctionType.InCore)
        def update(
            self,
            page_top: Column,
            page_total: Column,
            page_average: Average,
            best: pl.InOut[Column],
            total: pl.InOut[Column],
            average: pl.InOut[Average],
        ) -> pl.Tuple[Column, Column, Average]:
            old, new = pl.load(best, [0, 0], [GROUP, 1]), pl.load(page_top, [0, 0], [GROUP, 1])
            highest = pl.maximum(old, new)
            kept, added = pl.exp(old - highest), pl.exp(new - highest)
            sums = pl.load(total, [0, 0], [GROUP, 1]) * kept + pl.load(page_total, [0, 0], [GROUP, 1]) * added
            before = pl.row_expand_mul(pl.load(average, [0, 0], [GROUP, DIM]), kept)
            page = pl.row_expand_mul(pl.load(page_average, [0, 0], [GROUP, DIM]), added)
            best = pl.store(highest, [0, 0], best)
            total = pl.store(sums, [0, 0], total)
            average = pl.store(before + page, [0, 0], average)
            return best, total, average

        @pl.function(type=pl.FunctionType.InCore)
        def finish(self, total: Column, average: Average, out: pl.Out[Average]) -> Average:
            sums = pl.load(total, [0, 0], [GROUP, 1])
            return pl.store(pl.row_expand_div(pl.load(average, [0, 0], [GROUP, DIM]), sums), [0, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            q: Queries,
            k: Cache,
            v: Cache,
            table: pl.Tensor[[BATCH, WIDTH], pl.INT32],
            lengths: pl.Tensor[[BATCH], pl.INT32],
            out: pl.Out[Result],
        ) -> Result:
            for b in pl.parallel(BATCH):
                for h in pl.parallel(KV):
                    length = pl.cast(pl.read(lengths, [b]), pl.INDEX)
                    row = (b * KV + h) * GROUP
                    queries = pl.slice(q, [GROUP, DIM], [row, 0])
                    best = pl.create_tensor([GROUP, 1], dtype=pl.FP32)
                    total = pl.create_tensor([GROUP, 1], dtype=pl.FP32)
                    average = pl.create_tensor([GROUP, DIM], dtype=pl.FP32)
                    best, total, average = self.start(best, total, average)
                    for j in pl.range((length + PAGE - 1) // PAGE):
                        page = pl.cast(pl.read(table, [b, j]), pl.INDEX)
                        first = (page * KV + h) * PAGE
                        keys = pl.slice(k, [PAGE, DIM], [first, 0])
                        values = pl.slice(v, [PAGE, DIM], [first, 0])
                        s = pl.create_tensor([GROUP, PAGE], dtype=pl.FP32)
                        w = pl.create_tensor([GROUP, PAGE], dtype=pl.BF16)
                        top = pl.create_tensor([GROUP, 1], dtype=pl.FP32)
                        sums = pl.create_tensor([GROUP, 1], dtype=pl.FP32)
                        weighed = pl.create_tensor([GROUP, DIM], dtype=pl.FP32)
                        s = self.scores(queries, keys, s)
                        there = pl.slice(s, [GROUP, pl.min(PAGE, length - j * PAGE)], [0, 0])
                        w, top, sums = self.weigh(there, w, top, sums)
                        weighed = self.values_of(w, values, weighed)
                        best, total, average = self.update(top, sums, weighed, best, total, average)
                    rows = pl.slice(out, [GROUP, DIM], [row, 0])
                    rows = self.finish(total, average, rows)
            return out

    return PagedAttention


PagedAttention = paged_attention(SMALL)
reference = partial(attended, SMALL)


def main() -> None:
    inputs = make_inputs()
    out, expected = ir.compile(PagedAttention)(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=1e-2)
    error = (out - expected).abs().max()
    print(f"paged_attention: {SMALL.batch} sequences of up to {SMALL.longest} tokens, max error {error:.1e}")


if __name__ == "__main__":
    main()
