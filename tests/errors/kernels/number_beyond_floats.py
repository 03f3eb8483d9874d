"""An integer larger than every float."""

import tilewright.language as pl

EXPECTED = "OperandError"


@pl.function
def kernel(out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    out = pl.store(pl.tile_full([64, 64], dtype=pl.FP32, value=-(10**400)), [0, 0], out)
