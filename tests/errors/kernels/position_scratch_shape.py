"""A scratch tile that is not like the tile whose rows are searched."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    where = pl.row_argmax(tile, pl.create_tile([64, 32], dtype=pl.FP32))
    return out
