"""A lane's half outside the loop over lanes."""

import tilewright.language as pl

EXPECTED = "MisplacedDirectiveError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    half = pl.aiv_shard(pl.load(x, [0, 0], [16, 32]))
