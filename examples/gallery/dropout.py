"""Dropout, and its backward without a stored mask: both draw the same numbers again from the seed.

`pl.rand` numbers its draws by where they stand in the tensor, so the mask is the same for every tile size, thread count
and back end. The seed is a running number: another one compiles nothing.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

ROWS = 16


@pl.jit
def dropout(
    x: pl.Tensor, p: pl.Scalar[pl.FP32, pl.RUNTIME], seed: pl.Scalar[pl.INT64, pl.RUNTIME], out: pl.Out[pl.Tensor]
):
    rows, cols = x.shape
    for row in pl.parallel(0, rows, ROWS):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [ROWS, cols])
            keep = pl.rand(seed, [ROWS, cols], offset=row * cols) >= p
            pl.store(pl.where(keep, t * (1 / (1 - p)), 0.0), [row, 0], out)
    return out


def make_inputs(seed: int = 0, rows: int = 100, cols: int = 200) -> tuple[torch.Tensor, float, int]:
    return torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed)), 0.25, 1234 + seed


def make_output(x: torch.Tensor, p: float, seed: int) -> tuple[torch.Tensor]:
    return (torch.empty_like(x),)


def reference(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    drawn = philox(seed, torch.arange(x.numel())).reshape(x.shape)
    return torch.where(drawn >= p, x / (1 - p), 0.0)


def philox(seed: int, numbers: torch.Tensor) -> torch.Tensor:
    """Return the uniform numbers that Philox 4x32-10 draws at some places: four to a block, 24 bits of a word each."""
    word = (1 << 32) - 1
    a, b, c, d = numbers // 4 & word, numbers // 4 >> 32, torch.zeros_like(numbers), torch.zeros_like(numbers)
    first, second = seed & word, seed >> 32 & word
    for _ in range(10):
        (high, low), (upper, lower) = _product(a, 0xD2511F53), _product(c, 0xCD9E8D57)
        a, b, c, d = upper ^ b ^ first, lower, high ^ d ^ second, low
        first, second = first + 0x9E3779B9 & word, second + 0xBB67AE85 & word
    words = torch.stack([a, b, c, d], dim=-1).gather(-1, numbers[:, None] % 4)[:, 0]
    return (words >> 8) * 2.0**-24


def _product(x: torch.Tensor, y: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the upper and the lower 32 bits of products of 32 bits, which 64 bits with a sign cannot hold."""
    return (x >> 16) * y + ((x & 0xFFFF) * y >> 16) >> 16, x * y & 0xFFFFFFFF


def torch_dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    return torch.nn.functional.dropout(x, p)


def main() -> None:
    inputs = make_inputs(rows=2048, cols=2048)
    show("dropout", dropout, reference, inputs, make_output(*inputs), beside=torch_dropout)


if __name__ == "__main__":
    main()
