"""A program without functions."""

import tilewright.language as pl

EXPECTED = "EmptyProgramError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.program
class Kernels:
    def main(self, x: Matrix) -> Matrix:
        return x
