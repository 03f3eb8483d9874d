"""A condition whose parts the passes nest deeper than Python's own stack holds."""

import tilewright.language as pl
from tilewright import ir

EXPECTED = "NestingError"


kernel = pl.parse(
    f"""
@pl.function
def kernel(n: pl.Scalar[pl.INT32]):
    return {" and ".join(["n > 0"] * 4000)}
"""
)

ir.compile(kernel)
