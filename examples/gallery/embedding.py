"""An embedding, both ways: rows of a table taken by index, and the gradient, which adds rows where they came from.

A tile of indices in a subscript takes rows. The backward pass only adds rows to one tensor, so that its loop is
divided by the rows of the table: each thread adds to its own, and nobody waits.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

TOKENS = 64


@pl.jit
def embedding(tokens: pl.Tensor, table: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, tokens.shape[0], TOKENS):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(table[pl.load(tokens, [i], [TOKENS])], [i, 0], out)
    return out


@pl.jit
def embedding_backward(tokens: pl.Tensor, grad: pl.Tensor, table_grad: pl.InOut[pl.Tensor]):
    for i in pl.parallel(0, tokens.shape[0], TOKENS):
        with pl.at(level=pl.Level.CORE_GROUP):
            rows = pl.load(grad, [i, 0], [TOKENS, grad.shape[1]])
            pl.atomic_add(table_grad, pl.load(tokens, [i], [TOKENS]), rows)
    return table_grad


def make_inputs(
    seed: int = 0, words: int = 100, tokens: int = 300, width: int = 64
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, words, (tokens,), generator=generator), torch.randn(words, width, generator=generator)


def make_output_embedding(tokens: torch.Tensor, table: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.empty(len(tokens), table.shape[1]),)


def make_inputs_embedding_backward(
    seed: int = 0, words: int = 100, tokens: int = 300, width: int = 64
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    places, table = make_inputs(seed, words, tokens, width)
    return places, torch.randn(tokens, width, generator=torch.Generator().manual_seed(seed)), torch.zeros_like(table)


def reference_embedding(tokens: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.embedding(tokens, table)


def reference_embedding_backward(tokens: torch.Tensor, grad: torch.Tensor, table_grad: torch.Tensor) -> torch.Tensor:
    return table_grad.clone().index_add_(0, tokens, grad)


def main() -> None:
    large = {"words": 32000, "tokens": 8192, "width": 512}
    inputs = make_inputs(**large)
    show("embedding", embedding, reference_embedding, inputs, make_output_embedding(*inputs))
    given = make_inputs_embedding_backward(**large)
    theirs = torch.zeros_like(given[2])
    show("embedding backward", embedding_backward, lambda tokens, grad, _: theirs.index_add_(0, tokens, grad), given)


if __name__ == "__main__":
    main()
