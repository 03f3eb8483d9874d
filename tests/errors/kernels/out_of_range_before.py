"""A load that starts before its tensor, which clamp=True does not mend."""

import tilewright.language as pl

EXPECTED = "OutOfBoundsError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [-1, 0], [64, 64], clamp=True)
    return pl.store(tile, [0, 0], out)
