"""A function that calls itself."""

import tilewright.language as pl

EXPECTED = "RecursiveCallError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.program
class Kernels:
    @pl.function
    def main(self, x: Matrix) -> Matrix:
        return self.main(x)
