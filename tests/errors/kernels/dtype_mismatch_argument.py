"""A call with a tensor of another element type."""

import tilewright.language as pl

EXPECTED = "DTypeMismatchError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def copy(source: Matrix, target: pl.Out[Matrix]) -> Matrix:
    return pl.store(pl.load(source, [0, 0], [64, 64]), [0, 0], target)


@pl.function
def kernel(x: pl.Tensor[[64, 64], pl.FP16], out: pl.Out[Matrix]):
    return copy(x, out)
