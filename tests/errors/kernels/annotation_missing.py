"""A parameter without an annotation."""

import tilewright.language as pl

EXPECTED = "MissingAnnotationError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n):
    pass
