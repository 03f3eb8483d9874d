"""An assertion that does not hold of what is known."""

import tilewright.language as pl

EXPECTED = "StaticAssertionError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    t = pl.load(x, [0, 0], [64, 64])
    assert t.shape[0] == 32, "half of it"
