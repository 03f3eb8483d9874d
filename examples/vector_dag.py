"""A small graph of vector kernels over intermediate tensors: (a - b) ** 2 / (a ** 2 + b ** 2 + 1).

Each kernel does one thing and is called where its operands are ready; the intermediates are tensors
that the program makes for itself. What may run at the same time follows from who reads and writes
what:

    a, b --> diff --> square --------------------+--> ratio --> out
    a ----> square --+--> sum --> plus one ------+
    b ----> square --+
"""

import torch

import tilewright.language as pl
from tilewright import ir

ROWS, COLS = 128, 128

Matrix = pl.Tensor[[ROWS, COLS], pl.FP32]


@pl.program
class VectorDag:
    @pl.function(type=pl.FunctionType.InCore)
    def sub(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        lhs = pl.load(a, [0, 0], [ROWS, COLS])
        rhs = pl.load(b, [0, 0], [ROWS, COLS])
        return pl.store(pl.sub(lhs, rhs), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def square(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [ROWS, COLS])
        return pl.store(pl.mul(tile, tile), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def add(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        lhs = pl.load(a, [0, 0], [ROWS, COLS])
        rhs = pl.load(b, [0, 0], [ROWS, COLS])
        return pl.store(pl.add(lhs, rhs), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def add_scalar(self, x: Matrix, value: pl.Scalar[pl.FP32], out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [ROWS, COLS])
        return pl.store(pl.adds(tile, value), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def div(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        lhs = pl.load(a, [0, 0], [ROWS, COLS])
        rhs = pl.load(b, [0, 0], [ROWS, COLS])
        return pl.store(pl.div(lhs, rhs), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        diff = self.sub(a, b, pl.create_tensor([ROWS, COLS], dtype=pl.FP32))
        above = self.square(diff, pl.create_tensor([ROWS, COLS], dtype=pl.FP32))
        a_squared = self.square(a, pl.create_tensor([ROWS, COLS], dtype=pl.FP32))
        b_squared = self.square(b, pl.create_tensor([ROWS, COLS], dtype=pl.FP32))
        total = self.add(a_squared, b_squared, pl.create_tensor([ROWS, COLS], dtype=pl.FP32))
        below = self.add_scalar(total, 1.0, pl.create_tensor([ROWS, COLS], dtype=pl.FP32))
        return self.div(above, below, out)


def make_inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(ROWS, COLS, generator=generator), torch.randn(ROWS, COLS, generator=generator)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a - b) ** 2 / (a**2 + b**2 + 1)


def main() -> None:
    inputs = make_inputs()
    out, expected = ir.compile(VectorDag)(*inputs), reference(*inputs)
    torch.testing.assert_close(out, expected)
    print(f"vector_dag: 7 kernel calls, 6 intermediates, max error {(out - expected).abs().max():.1e}")


if __name__ == "__main__":
    main()
