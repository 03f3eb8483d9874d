"""A mistake inside a kernel given as text."""

import tilewright.language as pl

EXPECTED = "UndefinedNameError"


pl.parse(
    """
@pl.function
def kernel(x: pl.Tensor[[64, 64], pl.FP32]):
    return pl.exp(y)
""",
    filename="kernel.txt",
)
