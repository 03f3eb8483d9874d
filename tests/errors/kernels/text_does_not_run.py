"""Text whose own Python code fails."""

import tilewright.language as pl

EXPECTED = "TextExecutionError"


pl.parse("""
ROWS = 64
COLS = ROWZ * 2


@pl.function
def kernel(x: pl.Tensor[[ROWS, COLS], pl.FP32]):
    return x
""")
