"""What both lanes computed, used before both have."""

import tilewright.language as pl

EXPECTED = "MisplacedDirectiveError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
        both = pl.aic_gather(pl.aiv_shard(pl.load(x, [0, 0], [16, 32])))
        out = pl.store(both, [0, 0], out)
