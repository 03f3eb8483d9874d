"""A kernel whose text nobody kept."""

import tilewright.language as pl

EXPECTED = "SourceUnavailableError"
Matrix = pl.Tensor[[64, 64], pl.FP32]


exec("@pl.function\ndef kernel(x: Matrix):\n    return x\n")
