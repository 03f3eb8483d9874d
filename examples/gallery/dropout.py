"""Dropout whose mask nobody keeps: it is drawn again from the seed and the place of each element, forward and backward.

`offset` is the number of a tile's first element and `pitch` the length of a row of the whole matrix, so that every way
to cut the matrix into tiles drops the same elements, and so does the reference. The seed is a number of the running
program: another one needs no other code.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

import torch

import tilewright.language as pl

ROWS = 16
DROPPED = 0.25
WORD = 0xFFFFFFFF


@pl.jit
def dropout(x: pl.Tensor, seed: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
    columns = x.shape[1]
    for row in pl.parallel(0, x.shape[0], ROWS):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [row, 0], [ROWS, columns])
            drawn = pl.rand(seed, [ROWS, columns], row * columns, columns)
            pl.store(pl.where(drawn < DROPPED, 0.0, tile * (1 / (1 - DROPPED))), [row, 0], out)
    return out


def make_inputs(seed: int = 0, rows: int = 48, columns: int = 201) -> tuple[torch.Tensor, int]:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)), 7 + seed


def make_output(x: torch.Tensor, seed: int) -> tuple[torch.Tensor]:
    return (torch.empty_like(x),)


def uniform(seed: int, count: int) -> torch.Tensor:
    """Return the numbers that `pl.rand` draws: the words of Philox 4x32-10, four elements to a block."""
    number = torch.arange(count)
    block, zero = number >> 2, torch.zeros_like(number)
    words, key = [block & WORD, block >> 32, zero, zero], [seed & WORD, seed >> 32 & WORD]
    for _ in range(10):
        low, high = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        first, third = ((high >> 32) & WORD) ^ words[1] ^ key[0], ((low >> 32) & WORD) ^ words[3] ^ key[1]
        words, key = (
            [first, high & WORD, third, low & WORD],
            [(key[0] + 0x9E3779B9) & WORD, (key[1] + 0xBB67AE85) & WORD],
        )
    return (torch.stack(words)[number & 3, number] >> 8).float() * 2.0**-24


def reference(x: torch.Tensor, seed: int) -> torch.Tensor:
    return torch.where(uniform(seed, x.numel()).reshape(x.shape) < DROPPED, 0.0, x / (1 - DROPPED))


def main() -> None:
    x, seed = make_inputs(rows=2048, columns=2048)
    (out,) = make_output(x, seed)
    dropout(x, seed, out)
    torch.testing.assert_close(out, reference(x, seed))
    times: list[tuple[float, float]] = []
    for _ in range(7):
        start = perf_counter()
        dropout(x, seed, out)
        middle = perf_counter()
        torch.nn.functional.dropout(x, DROPPED)
        times.append((middle - start, perf_counter() - middle))
    mine, other = (median(side) for side in zip(*times, strict=True))
    kept = 100 * float((out != 0).float().mean())
    print(f"dropout: {1e3 * mine:.2f} ms, {other / mine:.2f}x torch, keeps {kept:.2f} %")


if __name__ == "__main__":
    main()
