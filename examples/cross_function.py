"""Functions calling functions: four ways to give a piece of a program a name.

- a method of the program, called as `self.moments(...)`: a kernel of its own, here with two results;
- `@pl.function` outside any class: a kernel that several programs can call;
- `@pl.inline`: a template, written out where it is called, for tiles as well as scalars;
- an `Opaque` method: loops and kernel scopes of its own, called like a subroutine.

Together they standardize the rows of a tensor and mix them with another one.
"""

import torch

import tilewright.language as pl
from tilewright import ir

M, COLS = 96, 128
ROWS = 32

Matrix = pl.Tensor[[M, COLS], pl.FP32]
Column = pl.Tensor[[M, 1], pl.FP32]


@pl.inline
def mean(tile, count=COLS):
    return pl.row_sum(tile) / count


@pl.inline
def band(index):
    return index * ROWS, 0


@pl.function(type=pl.FunctionType.InCore)
def lerp(a: Matrix, b: Matrix, weight: pl.Scalar[pl.FP32], out: pl.Out[Matrix]) -> Matrix:
    for i in pl.range(M // ROWS):
        x = pl.load(a, band(i), [ROWS, COLS])
        y = pl.load(b, band(i), [ROWS, COLS])
        out = pl.store(x + weight * (y - x), band(i), out)
    return out


@pl.program
class CrossFunction:
    @pl.function(type=pl.FunctionType.InCore)
    def moments(
        self, x: Matrix, index: pl.Scalar[pl.INDEX], average: pl.Out[Column], spread: pl.Out[Column]
    ) -> pl.Tuple[Column, Column]:
        tile = pl.load(x, band(index), [ROWS, COLS])
        m = mean(tile)
        centered = tile - m
        average = pl.store(m, band(index), average)
        spread = pl.store(pl.sqrt(mean(centered * centered)), band(index), spread)
        return average, spread

    @pl.function(type=pl.FunctionType.Opaque)
    def standardize(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        average = pl.create_tensor([M, 1], dtype=pl.FP32)
        spread = pl.create_tensor([M, 1], dtype=pl.FP32)
        for i in pl.parallel(M // ROWS):
            average, spread = self.moments(x, i, average, spread)
        for i in pl.parallel(M // ROWS):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="apply_moments"):
                tile = pl.load(x, band(i), [ROWS, COLS])
                tile = pl.row_expand_sub(tile, pl.load(average, band(i), [ROWS, 1]))
                tile = pl.row_expand_div(tile, pl.load(spread, band(i), [ROWS, 1]))
                out = pl.store(tile, band(i), out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, y: Matrix, weight: pl.Scalar[pl.FP32], out: pl.Out[Matrix]) -> Matrix:
        standard = pl.create_tensor([M, COLS], dtype=pl.FP32)
        standard = self.standardize(x, standard)
        return lerp(standard, y, weight, out)


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, float]:
    generator = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(M, COLS, generator=generator) - 1
    return x, torch.randn(M, COLS, generator=generator), 0.25


def reference(x: torch.Tensor, y: torch.Tensor, weight: float) -> torch.Tensor:
    standard = (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True)
    return torch.lerp(standard, y, weight)


def main() -> None:
    inputs = make_inputs()
    out, expected = ir.compile(CrossFunction)(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    names = ", ".join(CrossFunction.function_names)
    print(f"cross_function: {names}; templates are gone by then; max error {(out - expected).abs().max():.1e}")


if __name__ == "__main__":
    main()
