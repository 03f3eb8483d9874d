"""Cross entropy over a large vocabulary: -log softmax(logits)[target], a row at a time, in one pass over the words.

The largest logit so far and the sum of exponentials below it are carried from block to block; the target's own logit
is what a mask lets through.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

WORDS = 1024


@pl.jit
def cross_entropy(logits: pl.Tensor, target: pl.Tensor, out: pl.Out[pl.Tensor]):
    tokens, vocabulary = logits.shape
    for row in pl.parallel(tokens):
        with pl.at(level=pl.Level.CORE_GROUP):
            wanted = pl.load(target, [row, 0], [1, 1])
            best = pl.tile.full([1, 1], dtype=pl.FP32, value=-1e30)
            total = pl.tile.full([1, 1], dtype=pl.FP32, value=0.0)
            chosen = pl.tile.full([1, 1], dtype=pl.FP32, value=0.0)
            for first in pl.range(0, vocabulary, WORDS):
                t = pl.load(logits, [row, first], [1, WORDS])
                highest = pl.maximum(best, pl.max(t, axis=-1, keepdims=True))
                total = total * pl.exp(best - highest) + pl.sum(pl.exp(t - highest), axis=-1, keepdims=True)
                is_target = pl.arange(first, first + WORDS) == wanted
                chosen = chosen + pl.sum(pl.where(is_target, t, 0.0), axis=-1, keepdims=True)
                best = highest
            pl.store(pl.log(total) + best - chosen, [row, 0], out)
    return out


def make_inputs(seed: int = 0, tokens: int = 10, vocabulary: int = 5000) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(tokens, vocabulary, generator=generator)
    return logits, torch.randint(vocabulary, (tokens, 1), generator=generator, dtype=torch.int32)


def make_output(logits: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.empty(len(logits), 1),)


def reference(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits, target[:, 0].long(), reduction="none")[:, None]


def main() -> None:
    inputs = make_inputs(tokens=512, vocabulary=32000)
    show("cross entropy", cross_entropy, reference, inputs, make_output(*inputs))


if __name__ == "__main__":
    main()
