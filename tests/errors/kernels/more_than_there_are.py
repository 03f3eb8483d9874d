"""More elements of each row than it has."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    values, _ = pl.topk(pl.load(x, [0, 0], [64, 64]), k=100)
    return pl.store(values, [0, 0], out)
