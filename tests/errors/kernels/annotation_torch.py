"""A parameter annotated with text that is no type."""

import tilewright.language as pl

EXPECTED = "AnnotationError"


@pl.function
def kernel(x: "torch.Tensor"):
    pass
