"""Axes: rows summed up, searched, and put in order."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from contenders import ours
from contest import EAGER, OURS, Contest, Field, Work

import tilewright.language as pl
from tilewright.core.program import Program

SHAPES = {"4096²": (4096, 4096, 4), "64 x 32000": (64, 32000, 2)}
"""Rows, columns, and how many rows a tile has."""


def cumsum(m: int, n: int, rows: int) -> Program:
    Matrix = pl.Tensor[[m, n], pl.FP32]

    @pl.program
    class CumSum:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
            for row in pl.parallel(0, m, rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out = pl.store(pl.cumsum(pl.load(x, [row, 0], [rows, n]), axis=-1), [row, 0], out)
            return out

    return CumSum


def argmax(m: int, n: int, rows: int) -> Program:
    Places = pl.Tensor[[m], pl.INT32]

    @pl.program
    class ArgMax:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[m, n], pl.FP32], out: pl.Out[Places]) -> Places:
            for row in pl.parallel(0, m, rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out = pl.store(pl.argmax(pl.load(x, [row, 0], [rows, n]), axis=-1), [row], out)
            return out

    return ArgMax


def sort(m: int, n: int, rows: int) -> Program:
    Places = pl.Tensor[[m, n], pl.INT32]

    @pl.program
    class Sort:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[m, n], pl.FP32], out: pl.Out[Places]) -> Places:
            for row in pl.parallel(0, m, rows):
                with pl.at(level=pl.Level.CORE_GROUP):
                    out = pl.store(pl.argsort(pl.load(x, [row, 0], [rows, n]), axis=-1), [row, 0], out)
            return out

    return Sort


def topk(k: int) -> Callable[[int, int, int], Program]:
    def program(m: int, n: int, rows: int) -> Program:
        Values = pl.Tensor[[m, k], pl.FP32]

        @pl.program
        class TopK:
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, x: pl.Tensor[[m, n], pl.FP32], out: pl.Out[Values]) -> Values:
                for row in pl.parallel(0, m, rows):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        values, _ = pl.topk(pl.load(x, [row, 0], [rows, n]), k)
                        out = pl.store(values, [row, 0], out)
                return out

        return TopK

    return program


Eager = Callable[..., Any]
"""What torch calls it; it may be told where results go."""


def entered(program: Callable[[int, int, int], Program], eager: Eager, shape: str) -> Callable[[], Field]:
    """Return the contest of a program over the rows of a matrix."""

    def enter() -> Field:
        m, n, rows = SHAPES[shape]
        x = torch.randn(m, n)
        held = eager(x)
        wanted: torch.Tensor = (
            held.indices if program is sort else held if isinstance(held, torch.Tensor) else held.values
        )
        expected = wanted.clone() if wanted.is_floating_point() else wanted.int()
        room = held if isinstance(held, torch.Tensor) else tuple(held)

        def run() -> torch.Tensor:
            eager(x, out=room)
            return expected

        contenders = {OURS: ours(program(m, n, rows), x, out=torch.empty_like(expected)), EAGER: run}
        return Field(expected, contenders, rtol=1e-4, atol=1e-2)

    return enter


CONTESTS: dict[str, tuple[Callable[[int, int, int], Program], Eager]] = {
    "cumsum": (cumsum, partial(torch.cumsum, dim=-1)),
    "argmax": (argmax, partial(torch.argmax, dim=-1)),
    "argsort": (sort, partial(torch.sort, dim=-1, stable=True)),
    **{f"topk {k}": (topk(k), partial(torch.topk, k=k)) for k in (2, 8, 64)},
}
ROWS = tuple(
    Contest(f"{name} {shape}", entered(*parts, shape), Work(bytes=4 * SHAPES[shape][0] * SHAPES[shape][1]), target=1.0)
    for name, parts in CONTESTS.items()
    for shape in SHAPES
)
