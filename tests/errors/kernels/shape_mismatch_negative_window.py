"""A window of fewer than no rows."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    return pl.assemble(out, pl.slice(x, [-4, 64], [8, 0]), [0, 0])
