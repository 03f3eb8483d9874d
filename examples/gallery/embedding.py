"""An embedding, there and back: rows of a table by index, and gradients added to the rows they came from.

`table[indices]` takes a row for each index of a tile, and `pl.atomic_add` adds one to each: turns of the loop that meet
in a row take it in order, so that words may repeat. An index outside the table is an error, not a stray read.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

TOKENS = 64


@pl.jit
def embedding(table: pl.Tensor, tokens: pl.Tensor, out: pl.Out[pl.Tensor]):
    for first in pl.parallel(0, tokens.shape[1], TOKENS):
        with pl.at(level=pl.Level.CORE_GROUP):
            words = pl.load(tokens, [0, first], [1, TOKENS])
            pl.store(table[words], [first, 0], out)
    return out


@pl.jit
def embedding_backward(dy: pl.Tensor, tokens: pl.Tensor, dtable: pl.InOut[pl.Tensor]):
    for first in pl.parallel(0, tokens.shape[1], TOKENS):
        with pl.at(level=pl.Level.CORE_GROUP):
            words = pl.load(tokens, [0, first], [1, TOKENS])
            pl.atomic_add(dtable, words, pl.load(dy, [first, 0], [TOKENS, dy.shape[1]]))
    return dtable


def make_inputs_embedding(seed: int = 0, words: int = 50, width: int = 40, count: int = 100):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(words, (1, count), generator=generator, dtype=torch.int32)
    return torch.randn(words, width, generator=generator), tokens


def make_output_embedding(table: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.empty(tokens.shape[1], table.shape[1]),)


def reference_embedding(table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.embedding(tokens[0], table)


def make_inputs_embedding_backward(seed: int = 0, words: int = 50, width: int = 40, count: int = 100):
    _, tokens = make_inputs_embedding(seed, words, width, count)
    dy = torch.randn(count, width, generator=torch.Generator().manual_seed(seed))
    return dy, tokens, torch.zeros(words, width)


def reference_embedding_backward(dy: torch.Tensor, tokens: torch.Tensor, dtable: torch.Tensor) -> torch.Tensor:
    return dtable.index_add(0, tokens[0], dy)


def in_place(dy: torch.Tensor, tokens: torch.Tensor, dtable: torch.Tensor) -> torch.Tensor:
    return dtable.index_add_(0, tokens[0], dy)


def main() -> None:
    inputs = make_inputs_embedding(words=32000, width=1024, count=8192)
    show("embedding", embedding, reference_embedding, inputs, make_output_embedding(*inputs))
    inputs = make_inputs_embedding_backward(words=32000, width=1024, count=8192)
    show("embedding, backward", embedding_backward, reference_embedding_backward, inputs, beside=in_place)


if __name__ == "__main__":
    main()
