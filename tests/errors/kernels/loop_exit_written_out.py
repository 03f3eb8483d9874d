"""A loop over constants that the running program would leave."""

import tilewright.language as pl

EXPECTED = "LoopExitError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INDEX], out: pl.Out[Matrix]):
    for i in (0, 16, 32):
        if n < i:
            break
        out = pl.store(pl.load(x, [i, 0], [16, 64]), [i, 0], out)
    return out
