"""An option of an op that is given as a string instead of its enumeration."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], out, atomic="add")
