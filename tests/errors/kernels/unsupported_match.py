"""A match statement."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.function
def kernel(x: Matrix):
    match x.shape[0]:
        case 64:
            tile = pl.load(x, [0, 0], [64, 64])
