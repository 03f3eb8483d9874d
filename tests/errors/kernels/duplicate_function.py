"""Two functions of one program with the same name."""

import tilewright.language as pl

EXPECTED = "DuplicateFunctionError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.program
class Kernels:
    @pl.function
    def main(self, x: Matrix) -> Matrix:
        return x

    @pl.function
    def main(self, x: Matrix, n: pl.Scalar[pl.INT32]) -> Matrix:
        return x
