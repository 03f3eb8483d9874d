"""A number where a tile is taken."""

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    tile = pl.load(x, [0, 0], [64, 64])
    mask = pl.cmp(tile, tile, cmp_type=pl.CmpType.GT)
    return pl.store(pl.sel(mask, tile, 0.0), [0, 0], out)
