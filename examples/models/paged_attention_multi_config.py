"""One paged attention for every model: heads, their size, the page and the element type all come from the call.

Nothing is declared: the shapes of the arguments and two numbers say what a model is, and each model's first call makes
a program of its own. Long pages are taken in parts of at most 64 tokens, so that one kernel serves them all.
"""

import math

import torch
from paging import Inputs, Sizes, attended
from paging import make_inputs as inputs_of

import tilewright.language as pl

CONFIGS = (
    Sizes(batch=3, heads=8, kv_heads=2, dim=32, page=16, longest=80),
    Sizes(batch=2, heads=16, kv_heads=1, dim=64, page=128, longest=300),
    Sizes(batch=4, heads=4, kv_heads=4, dim=80, page=32, longest=100),
)


@pl.jit.incore
def attend(
    q: pl.Tensor,
    k: pl.Tensor,
    v: pl.Tensor,
    table: pl.Tensor,
    lengths: pl.Tensor,
    sequence: pl.INDEX,
    head: pl.INDEX,
    kv_heads: int,
    page: int,
    out: pl.Out[pl.Tensor],
):
    group, dim, part = q.shape[0] // (table.shape[0] * kv_heads), q.shape[1], min(page, 64)
    row = (sequence * kv_heads + head) * group
    queries = pl.load(q, [row, 0], [group, dim])
    length = pl.cast(pl.read(lengths, [sequence]), pl.INDEX)
    best = pl.tile.full([group, 1], dtype=pl.FP32, value=-1e30)
    total = pl.tile.full([group, 1], dtype=pl.FP32, value=0.0)
    average = pl.tile.full([group, dim], dtype=pl.FP32, value=0.0)
    for token in pl.range(0, length, part):
        found = pl.cast(pl.read(table, [sequence, token // page]), pl.INDEX)
        first = (found * kv_heads + head) * page + token % page
        tokens = pl.min(part, length - token)
        keys = pl.load(k, [first, 0], [part, dim], valid_shape=[tokens, dim])
        values = pl.load(v, [first, 0], [part, dim], valid_shape=[tokens, dim])
        scores = pl.matmul(queries, pl.tile.transpose_view(keys)) * (1 / math.sqrt(dim))
        highest = pl.maximum(best, pl.row_max(scores))
        weights = pl.row_expand_expdif(scores, highest)
        kept = pl.exp(best - highest)
        total = total * kept + pl.row_sum(weights)
        average = pl.row_expand_mul(average, kept) + pl.matmul(pl.cast(weights, q.dtype, mode="rint"), values)
        best = highest
    return pl.store(pl.row_expand_div(average, total), [row, 0], out)


@pl.jit
def paged_attention_multi_config(
    q: pl.Tensor,
    k: pl.Tensor,
    v: pl.Tensor,
    table: pl.Tensor,
    lengths: pl.Tensor,
    kv_heads: int,
    page: int,
    out: pl.Out[pl.Tensor],
):
    for sequence in pl.parallel(table.shape[0]):
        for head in pl.parallel(kv_heads):
            out = attend(q, k, v, table, lengths, sequence, head, kv_heads, page, out)
    return out


def make_inputs(seed: int = 0) -> tuple[Sizes, Inputs]:
    """Return a model and made-up inputs for it; seeds go through the models in turn."""
    sizes = CONFIGS[seed % len(CONFIGS)]
    return sizes, inputs_of(seed, sizes)


def run(sizes: Sizes, inputs: Inputs) -> torch.Tensor:
    """Return the attention of a model; the output is passed, since nothing declares its shape."""
    out = torch.empty_like(inputs[0], dtype=torch.float32)
    paged_attention_multi_config(*inputs, sizes.kv_heads, sizes.page, out)
    return out


def reference(sizes: Sizes, inputs: Inputs) -> torch.Tensor:
    return attended(sizes, *inputs)


def main() -> None:
    for seed in range(len(CONFIGS)):
        given = make_inputs(seed)
        torch.testing.assert_close(run(*given), reference(*given), rtol=2e-2, atol=1e-2)
    programs = paged_attention_multi_config.cache_info().currsize
    print(f"paged_attention_multi_config: {len(CONFIGS)} models from one kernel, {programs} programs")


if __name__ == "__main__":
    main()
