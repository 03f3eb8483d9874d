"""Several rows to be prefetched at once."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    ctx = pl.prefetch.make_context()
    event = pl.prefetch.async_prefetch(x, ctx)
