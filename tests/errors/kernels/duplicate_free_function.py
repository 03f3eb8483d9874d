"""A free function with the name of one of the program's."""

import tilewright.language as pl

EXPECTED = "DuplicateFunctionError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def copy(x: Matrix) -> Matrix:
    return x


free_copy = copy


@pl.program
class Kernels:
    @pl.function
    def copy(self, x: Matrix) -> Matrix:
        return x

    @pl.function
    def main(self, x: Matrix) -> Matrix:
        return free_copy(x)
