"""A tensor of negative extent."""

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.function
def kernel(x: pl.Tensor[[64, -1], pl.FP32]):
    pass
