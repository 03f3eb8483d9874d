"""Offsets and shapes loaded as so many numbers, one of which stands where an option does."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[64, 64], pl.FP32]):
    a = pl.load(x, 0, 0, 64, 64)
