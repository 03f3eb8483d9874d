"""An op between a tensor and a tile."""

import tilewright.language as pl

EXPECTED = "MixedKindsError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    return pl.store(pl.add(tile, x), [0, 0], out)
