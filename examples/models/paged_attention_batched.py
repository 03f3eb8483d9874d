"""Paged attention in steps over the whole batch: page after page, each step one kernel that walks all sequences.

Few large kernels instead of many small ones. What a step leaves for the next one lies in tensors that hold the whole
batch; a sequence that has no such page any more is passed over inside the kernels.
"""

import math
from functools import partial

import torch
from paging import SMALL, attended, make_inputs

import tilewright.language as pl

BATCH, HEADS, KV, GROUP = SMALL.batch, SMALL.heads, SMALL.kv_heads, SMALL.group
DIM, PAGE, WIDTH = SMALL.dim, SMALL.page, SMALL.table_width
ROWS = BATCH * HEADS
SCALE = 1 / math.sqrt(DIM)


@pl.jit.incore
def start(best: pl.Out[pl.Tensor], total: pl.Out[pl.Tensor], average: pl.Out[pl.Tensor]):
    best = pl.store(pl.tile.full([ROWS, 1], dtype=pl.FP32, value=-1e30), [0, 0], best)
    total = pl.store(pl.tile.full([ROWS, 1], dtype=pl.FP32, value=0.0), [0, 0], total)
    average = pl.store(pl.tile.full([ROWS, DIM], dtype=pl.FP32, value=0.0), [0, 0], average)
    return best, total, average


@pl.jit.incore
def score(q: pl.Tensor, k: pl.Tensor, table: pl.Tensor, lengths: pl.Tensor, j: pl.INDEX, scores: pl.InOut[pl.Tensor]):
    for b in pl.range(BATCH):
        if j * PAGE < pl.cast(pl.read(lengths, [b]), pl.INDEX):
            page = pl.cast(pl.read(table, [b, j]), pl.INDEX)
            for h in pl.range(KV):
                row = (b * KV + h) * GROUP
                queries = pl.load(q, [row, 0], [GROUP, DIM])
                keys = pl.load(k, [(page * KV + h) * PAGE, 0], [PAGE, DIM])
                pl.store(pl.matmul(queries, pl.tile.transpose_view(keys)) * SCALE, [row, 0], scores)
    return scores


@pl.jit.incore
def weigh(
    scores: pl.Tensor,
    lengths: pl.Tensor,
    j: pl.INDEX,
    weights: pl.InOut[pl.Tensor],
    kept: pl.InOut[pl.Tensor],
    best: pl.InOut[pl.Tensor],
    total: pl.InOut[pl.Tensor],
):
    for b in pl.range(BATCH):
        tokens = pl.min(PAGE, pl.cast(pl.read(lengths, [b]), pl.INDEX) - j * PAGE)
        if tokens > 0:
            row = b * HEADS
            raw = pl.load(scores, [row, 0], [HEADS, PAGE], valid_shape=[HEADS, tokens])
            there = pl.fillpad(raw, pad_value=pl.PadValue.min)
            before = pl.load(best, [row, 0], [HEADS, 1])
            highest = pl.maximum(before, pl.row_max(there))
            page = pl.row_expand_expdif(there, highest)
            rescale = pl.exp(before - highest)
            sums = pl.load(total, [row, 0], [HEADS, 1]) * rescale + pl.row_sum(page)
            pl.store(pl.cast(page, pl.BF16, mode="rint"), [row, 0], weights)
            pl.store(rescale, [row, 0], kept)
            pl.store(highest, [row, 0], best)
            pl.store(sums, [row, 0], total)
    return weights, kept, best, total


@pl.jit.incore
def gather(
    weights: pl.Tensor,
    v: pl.Tensor,
    table: pl.Tensor,
    lengths: pl.Tensor,
    kept: pl.Tensor,
    j: pl.INDEX,
    average: pl.InOut[pl.Tensor],
):
    for b in pl.range(BATCH):
        if j * PAGE < pl.cast(pl.read(lengths, [b]), pl.INDEX):
            page = pl.cast(pl.read(table, [b, j]), pl.INDEX)
            for h in pl.range(KV):
                row = (b * KV + h) * GROUP
                values = pl.load(v, [(page * KV + h) * PAGE, 0], [PAGE, DIM])
                found = pl.matmul(pl.load(weights, [row, 0], [GROUP, PAGE]), values)
                before = pl.load(average, [row, 0], [GROUP, DIM])
                pl.store(pl.row_expand_mul(before, pl.load(kept, [row, 0], [GROUP, 1])) + found, [row, 0], average)
    return average


@pl.jit.incore
def finish(total: pl.Tensor, average: pl.Tensor, out: pl.Out[pl.Tensor]):
    sums = pl.load(total, [0, 0], [ROWS, 1])
    return pl.store(pl.row_expand_div(pl.load(average, [0, 0], [ROWS, DIM]), sums), [0, 0], out)


@pl.jit
def paged_attention_batched(
    q: pl.Tensor,
    k: pl.Tensor,
    v: pl.Tensor,
    table: pl.Tensor,
    lengths: pl.Tensor,
    out: pl.Out[pl.Tensor[[ROWS, DIM], pl.FP32]],
):
    scores = pl.create_tensor([ROWS, PAGE], dtype=pl.FP32, init_value=0.0)
    weights = pl.create_tensor([ROWS, PAGE], dtype=pl.BF16, init_value=0.0)
    kept = pl.create_tensor([ROWS, 1], dtype=pl.FP32, init_value=0.0)
    best = pl.create_tensor([ROWS, 1], dtype=pl.FP32)
    total = pl.create_tensor([ROWS, 1], dtype=pl.FP32)
    average = pl.create_tensor([ROWS, DIM], dtype=pl.FP32)
    best, total, average = start(best, total, average)
    for j in pl.range(WIDTH):
        scores = score(q, k, table, lengths, j, scores)
        weights, kept, best, total = weigh(scores, lengths, j, weights, kept, best, total)
        average = gather(weights, v, table, lengths, kept, j, average)
    return finish(total, average, out)


reference = partial(attended, SMALL)


def main() -> None:
    inputs = make_inputs()
    out, expected = paged_attention_batched(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected, rtol=2e-2, atol=1e-2)
    error = (out - expected).abs().max()
    print(f"paged_attention_batched: {WIDTH} pages of {BATCH} sequences, three kernels a page, max error {error:.1e}")


if __name__ == "__main__":
    main()
