"""Two functions that call each other."""

import tilewright.language as pl

EXPECTED = "RecursiveCallError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.program
class Kernels:
    @pl.function
    def ping(self, x: Matrix) -> Matrix:
        return self.pong(x)

    @pl.function
    def pong(self, x: Matrix) -> Matrix:
        return self.ping(x)
