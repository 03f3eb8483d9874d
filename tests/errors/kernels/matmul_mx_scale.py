"""Exponents that are not one for every 32 elements."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"
Matrix = pl.Tensor[[16, 32], pl.FP32]


@pl.function(type=pl.FunctionType.InCore)
def kernel(a: pl.Tensor[[16, 64], pl.FP8E4M3FN], s: pl.Tensor[[16, 64], pl.FP8E8M0]):
    left = pl.load(a, [0, 0], [16, 64])
    right = pl.tile.transpose_view(left)
    scale = pl.load(s, [0, 0], [16, 64])
    r = pl.matmul_mx(left, scale, pl.concat(right, right), scale)
