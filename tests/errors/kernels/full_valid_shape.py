"""A valid part that is larger than its tile."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    u = pl.tile_full([8, 64], dtype=pl.FP32, value=0.0, valid_shape=[9, 64])
