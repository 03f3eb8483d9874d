"""An option that only the run knows."""

import tilewright.language as pl

EXPECTED = "NotStaticError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix, n: pl.Scalar[pl.INT32]):
    tile = pl.cast(pl.load(x, [0, 0], [64, 64]), pl.FP16, mode=n)
