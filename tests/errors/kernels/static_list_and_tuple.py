"""A list and a tuple that Python does not join either."""

import tilewright.language as pl

EXPECTED = "StaticEvaluationError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    shape = [16] + (64,)
    return pl.store(pl.load(x, [0, 0], shape), [0, 0], out)
