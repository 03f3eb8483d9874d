"""An array from outside, where a kernel takes arguments."""

from typing import Any

import numpy as np

import tilewright.language as pl

EXPECTED = "OperandError"
Matrix = pl.Tensor[[64, 64], pl.FP32]
WEIGHT: Any = np.ones((64, 64), np.float32)


@pl.function
def kernel(x: Matrix, out: pl.Out[Matrix]):
    return pl.store(pl.load(WEIGHT, [0, 0], [64, 64]), [0, 0], out)
