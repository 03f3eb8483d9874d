"""A break out of a parallel loop."""

import tilewright.language as pl

EXPECTED = "LoopExitError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    for i in pl.parallel(4):
        if i > 2:
            break
