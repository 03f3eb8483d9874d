"""Rows to be added that are not as many as the indices that say where."""

import tilewright.language as pl

EXPECTED = "ShapeMismatchError"


@pl.function(type=pl.FunctionType.InCore)
def kernel(
    index: pl.Tensor[[8], pl.INT32], rows: pl.Tensor[[16, 64], pl.FP32], out: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]
):
    places = pl.load(index, [0], [8])
    pl.atomic_add(out, places, pl.load(rows, [0, 0], [16, 64]))
    return out
