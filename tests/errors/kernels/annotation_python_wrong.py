"""A local annotated with another type of Python's than its value has."""

import tilewright.language as pl

EXPECTED = "AnnotationMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    n: int = x.shape
    return pl.store(pl.load(x, [0, 0], n), [0, 0], out)
