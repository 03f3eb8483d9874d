"""A sum of more terms than Python's own stack holds."""

import tilewright.language as pl

EXPECTED = "NestingError"


pl.parse(
    f"""
@pl.function
def kernel(n: pl.Scalar[pl.INT32]):
    return {" + ".join(["n"] * 800)}
"""
)
