"""A call of a function the program does not have."""

import tilewright.language as pl

EXPECTED = "UndefinedNameError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.InCore)
    def scale(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        return pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        return self.scael(x, out)
