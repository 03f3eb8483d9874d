"""Keyword arguments from a mapping."""

import tilewright.language as pl

EXPECTED = "UnsupportedFeatureError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


OPTIONS = {"offsets": [0, 0], "shapes": [64, 64]}


@pl.function
def kernel(x: Matrix):
    tile = pl.load(x, **OPTIONS)
