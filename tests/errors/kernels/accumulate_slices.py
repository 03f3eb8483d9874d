"""A sum added to one of two slices, by one name."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 16], pl.FP32], left: pl.Scalar[pl.BOOL], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    a = pl.load(x, [0, 0], [16, 16])
    acc = pl.tile.full([16, 32], dtype=pl.FP32, value=0.0)
    if left:
        part = pl.slice(acc, [16, 16], [0, 0])
    else:
        part = pl.slice(acc, [16, 16], [0, 16])
    part = pl.matmul_acc(part, a, a)
    return pl.store(acc, [0, 0], out)
