"""More indices than rows of the result."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    places = pl.slice(index, [1, 64], [0, 0])
    rows = pl.paged_gather(x, places, places, 4, 64, 32)
