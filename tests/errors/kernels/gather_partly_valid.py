"""A gather from a tensor of which only a part is valid."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    taken = pl.gather(pl.slice(x, [16, 64], [0, 0], valid_shape=[8, 64]), dim=-1, index=index)
