"""A parameter annotated with a Python type."""

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.function
def kernel(x: int):
    pass
