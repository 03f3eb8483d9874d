"""elements: where the largest element is, sorted rows, random bits."""

from collections.abc import Callable

import numpy as np
import torch
from contenders import ours
from contest import EAGER, OURS, Contest, Field, Work
from memory import output

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.ops.philox import random_words

N, ROWS_PER_TILE, COLUMNS_PER_TILE = 4096, 16, 128
KEY, COUNTER = (1, 2), (3, 4, 5, 6)


def search_rows(n: int, rows: int = ROWS_PER_TILE) -> Program:
    Matrix = pl.Tensor[[n, n], pl.FP32]
    Places = pl.Tensor[[n, 1], pl.INT32]

    @pl.program
    class RowArgmax:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, out: pl.Out[Places]) -> Places:
            for row in pl.parallel(0, n, rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    tile = pl.load(x, [row, 0], [rows, n])
                    where = pl.row_argmax(tile, pl.create_tile([rows, n], dtype=pl.FP32))
                    out = pl.store(where, [row, 0], out)
            return out

    return RowArgmax


def search_columns(n: int, columns: int = COLUMNS_PER_TILE) -> Program:
    Matrix = pl.Tensor[[n, n], pl.FP32]
    Places = pl.Tensor[[1, n], pl.INT32]

    @pl.program
    class ColumnArgmax:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, out: pl.Out[Places]) -> Places:
            for column in pl.parallel(0, n, columns):
                with pl.at(level=pl.Level.CORE_GROUP):
                    tile = pl.load(x, [0, column], [n, columns])
                    where = pl.col_argmax(tile, pl.create_tile([n, columns], dtype=pl.FP32))
                    out = pl.store(where, [0, column], out)
            return out

    return ColumnArgmax


def sorting(n: int) -> Program:
    """Return a program that sorts rows of 4096: runs of 32, then of 128, 512 and 2048, and two of these."""
    Matrix = pl.Tensor[[n, N], pl.FP32]
    Pairs = pl.Tensor[[n, 2 * N], pl.FP32]

    @pl.program
    class Sort:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, out: pl.Out[Pairs]) -> Pairs:
            for row in pl.parallel(n):
                with pl.at(level=pl.Level.CORE_GROUP):
                    values, counts = pl.load(x, [row, 0], [1, N]), pl.tile.ci(0, [1, N], dtype=pl.UINT32)
                    runs = pl.mrgsort(pl.sort32(values, counts), block_len=64)
                    runs = pl.mrgsort(pl.mrgsort(runs, block_len=256), block_len=1024)
                    first, second = pl.slice(runs, [1, N], [0, 0]), pl.slice(runs, [1, N], [0, N])
                    pairs = pl.mrgsort(first, second, tmp=pl.create_tile([1, 2 * N], dtype=pl.FP32))
                    out = pl.store(pairs, [row, 0], out)
            return out

    return Sort


def random_bits(n: int, rows: int = ROWS_PER_TILE) -> Program:
    Bits = pl.Tensor[[n, n], pl.INT32]
    (k0, k1), (c0, c1, c2, c3) = KEY, COUNTER

    @pl.program
    class Random:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, out: pl.Out[Bits]) -> Bits:
            for row in pl.parallel(0, n, rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    first = c0 + row * n // 4
                    bits = pl.tile.random(k0, k1, first, c1, c2, c3, [rows, n], dtype=pl.INT32)
                    out = pl.store(bits, [row, 0], out)
            return out

    return Random


def search(program: Callable[[int], Program], dim: int) -> Callable[[], Field]:
    def enter() -> Field:
        x, shape = torch.randn(N, N), (N, 1) if dim else (1, N)
        places, eager = torch.empty(shape, dtype=torch.int32), torch.empty(shape, dtype=torch.int64)
        run = ours(program(N), x, out=places)
        contenders = {OURS: lambda: run().long(), EAGER: lambda: torch.argmax(x, dim, keepdim=True, out=eager)}
        return Field(torch.argmax(x, dim, keepdim=True), contenders)

    return enter


def enter_sort() -> Field:
    x = torch.randn(N, N)
    values, indices = output(N, N), torch.empty(N, N, dtype=torch.int64)
    run = ours(sorting(N), x, out=output(N, 2 * N))

    def eager() -> torch.Tensor:
        return torch.sort(x, dim=-1, descending=True, out=(values, indices))[0]

    wanted = torch.sort(x, dim=-1, descending=True)[0]
    return Field(wanted, {OURS: lambda: run()[:, ::2], EAGER: eager}, rtol=0, atol=0)


def enter_random() -> Field:
    bits, floats = torch.empty(N, N, dtype=torch.int32), output(N, N)
    run = ours(random_bits(N), out=bits)
    wanted = torch.from_numpy(random_words(KEY, COUNTER, (ROWS_PER_TILE, N), 10).astype(np.uint32).view(np.int32))

    def eager() -> torch.Tensor:
        torch.rand(N, N, out=floats)
        return wanted  # other numbers than ours, of which nobody knows which they are

    def first() -> torch.Tensor:
        return run()[:ROWS_PER_TILE]

    return Field(wanted, {OURS: first, EAGER: eager})


GROUP = "Elements: positions, sorting, random bits"
ROWS = (
    Contest(f"row_argmax {N}²", search(search_rows, 1), Work(bytes=4 * N * N), target=1.0, group=GROUP),
    Contest(f"col_argmax {N}²", search(search_columns, 0), Work(bytes=4 * N * N), target=1.0, group=GROUP),
    Contest(f"sort {N}²", enter_sort, Work(bytes=3 * 4 * N * N), target=1.0, group=GROUP, most_rounds=7),
    Contest(f"random {N}²", enter_random, Work(bytes=4 * N * N), target=2.0, group=GROUP),
)
