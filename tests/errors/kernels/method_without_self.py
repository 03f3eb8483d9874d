"""A method without self."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.program
class Kernels:
    @pl.function
    def main() -> Matrix:
        pass
