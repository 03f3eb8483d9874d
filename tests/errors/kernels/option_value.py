"""A rounding mode that does not exist."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.cast(pl.load(x, [0, 0], [64, 64]), pl.FP16, mode="nearest")
