"""Python's float for a number that only the running program knows."""

import tilewright.language as pl

EXPECTED = "UncallableError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    for i in pl.range(4):
        tile = pl.add(tile, float(i))
    return pl.store(tile, [0, 0], out)
