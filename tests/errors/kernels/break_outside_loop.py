"""A break with no loop around it, which Python itself refuses."""

import tilewright.language as pl

EXPECTED = "NotPythonError"


pl.parse("""
@pl.function
def kernel(x: pl.Tensor[[64, 64], pl.FP32]):
    break
""")
