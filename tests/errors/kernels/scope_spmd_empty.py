"""An SPMD scope whose blocks cannot tell which they are."""

import tilewright.language as pl

EXPECTED = "DirectiveError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    with pl.spmd(4):
        tile = pl.load(x, [0, 0], [64, 64])
