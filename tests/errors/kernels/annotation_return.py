"""A return annotation that is no type of the language."""

import tilewright.language as pl

EXPECTED = "AnnotationError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix) -> list:
    return x
