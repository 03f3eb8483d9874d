"""A turned result in vector memory."""

import tilewright.language as pl

EXPECTED = "AttributeValueError"
Matrix = pl.Tensor[[16, 64], pl.FP32]
Index = pl.Tensor[[16, 64], pl.INT32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: Matrix, index: Index, out: pl.Out[Matrix]):
    places = pl.reshape(pl.slice(index, [1, 64], [0, 0]), [64])
    rows = pl.paged_gather(x, places, places, 4, 64, 64, space=pl.Mem.Vec, is_trans=True)
