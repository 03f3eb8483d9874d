"""A local annotation of a scalar that is not the type of its value."""

import tilewright.language as pl

EXPECTED = "AnnotationMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    n: pl.Scalar[pl.INT32] = 0.5
