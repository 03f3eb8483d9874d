"""A buffer that starts as a number its elements cannot be."""

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.function
def kernel(out: pl.Out[pl.Tensor[[64], pl.FP32]]):
    fresh = pl.create_tensor([64], dtype=pl.INT8, init_value=300)
