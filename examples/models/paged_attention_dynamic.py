"""Paged attention compiled once: the batch, the cache and the block table grow, the program stays.

What a model fixes is a number in the code: its heads, their size, the tokens of a page. What serving changes is a
symbol: how many sequences there are, how many pages the cache has, how many of them a sequence may use.
"""

import math

import torch
from paging import SMALL, Inputs, Sizes, attended
from paging import make_inputs as inputs_of

import tilewright.language as pl

KV, GROUP, DIM, PAGE = SMALL.kv_heads, SMALL.group, SMALL.dim, SMALL.page
SCALE = 1 / math.sqrt(DIM)

BATCH, ROWS, WIDTH = pl.dynamic("BATCH"), pl.dynamic("ROWS"), pl.dynamic("WIDTH")
Queries = pl.Tensor[[BATCH * KV * GROUP, DIM], pl.BF16]
Cache = pl.Tensor[[ROWS, DIM], pl.BF16]


@pl.jit.inline
def attend(q, k, v, table, sequence, head, length):
    queries = pl.load(q, [(sequence * KV + head) * GROUP, 0], [GROUP, DIM])
    best = pl.tile.full([GROUP, 1], dtype=pl.FP32, value=-1e30)
    total = pl.tile.full([GROUP, 1], dtype=pl.FP32, value=0.0)
    average = pl.tile.full([GROUP, DIM], dtype=pl.FP32, value=0.0)
    for j in pl.range((length + PAGE - 1) // PAGE):
        first = (pl.cast(pl.read(table, [sequence, j]), pl.INDEX) * KV + head) * PAGE
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
    return pl.row_expand_div(average, total)


@pl.jit
def paged_attention_dynamic(
    q: Queries,
    k: Cache,
    v: Cache,
    table: pl.Tensor[[BATCH, WIDTH], pl.INT32],
    lengths: pl.Tensor[[BATCH], pl.INT32],
    out: pl.Out[pl.Tensor[[BATCH * KV * GROUP, DIM], pl.FP32]],
):
    for sequence in pl.parallel(BATCH):
        for head in pl.parallel(KV):
            with pl.at(level=pl.Level.CORE_GROUP):
                length = pl.cast(pl.read(lengths, [sequence]), pl.INDEX)
                result = attend(q, k, v, table, sequence, head, length)
                pl.store(result, [(sequence * KV + head) * GROUP, 0], out)
    return out


def served(seed: int) -> Sizes:
    """Return another batch, with room for other lengths, of the same model."""
    return Sizes(3 + 2 * seed, SMALL.heads, KV, DIM, PAGE, longest=80 + 37 * seed)


def make_inputs(seed: int = 0) -> Inputs:
    return inputs_of(seed, served(seed))


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    sizes = Sizes(len(lengths), SMALL.heads, KV, DIM, PAGE, longest=PAGE * table.shape[1])
    return attended(sizes, q, k, v, table, lengths)


def main() -> None:
    for seed in range(3):
        inputs = make_inputs(seed)
        torch.testing.assert_close(paged_attention_dynamic(*inputs), reference(*inputs), rtol=2e-2, atol=1e-2)
    programs = paged_attention_dynamic.cache_info().currsize
    print(f"paged_attention_dynamic: {programs} program for batches of 3, 5 and 7, of up to 80, 117 and 154 tokens")


if __name__ == "__main__":
    main()
