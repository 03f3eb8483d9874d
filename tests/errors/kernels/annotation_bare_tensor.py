"""A tensor of unsaid shape."""

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.function
def kernel(x: pl.Tensor):
    pass
