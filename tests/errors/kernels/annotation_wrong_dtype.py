"""A tensor whose element type is no type of the language."""

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.function
def kernel(x: pl.Tensor[[64, 64], float]):
    pass
