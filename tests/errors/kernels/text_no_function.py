"""Text that defines no kernel."""

import tilewright.language as pl

EXPECTED = "ResultCountError"


pl.parse("""
def kernel(x: pl.Tensor[[64, 64], pl.FP32]):
    return x
""")
