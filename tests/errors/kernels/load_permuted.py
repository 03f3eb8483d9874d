"""Exponents loaded where they cannot be put in order."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(s: pl.Tensor[[16, 4], pl.FP8E8M0, pl.MX_A_ZZ]):
    a = pl.load(s, [0, 0], [16, 4])
