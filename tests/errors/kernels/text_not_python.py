"""Text that is not Python."""

import tilewright.language as pl

EXPECTED = "NotPythonError"


pl.parse("""
@pl.function
def kernel(x: pl.Tensor[[64, 64], pl.FP32]):
    tile = pl.load(x, [0, 0], [64, 64]
    return tile
""")
