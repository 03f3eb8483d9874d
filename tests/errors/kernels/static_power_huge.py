"""A power that would take longer to compute than anybody waits."""

import tilewright.language as pl

EXPECTED = "StaticEvaluationError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    return pl.store(pl.load(x, [0, 9**9**9], [64, 64]), [0, 0], out)
