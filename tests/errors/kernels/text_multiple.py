"""Text that defines two kernels."""

import tilewright.language as pl

EXPECTED = "ResultCountError"


pl.parse("""
@pl.function
def first(x: pl.Tensor[[64, 64], pl.FP32]):
    return x


@pl.function
def second(x: pl.Tensor[[64, 64], pl.FP32]):
    return x
""")
