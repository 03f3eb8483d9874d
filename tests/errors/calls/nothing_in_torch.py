"""A sum of integers that torch cannot add, written down in torch.

Fix: integers that torch computes with, such as pl.INT64.
"""

import tilewright.language as pl
from tilewright.debug import torch_codegen

EXPECTED = "NoTorchError"


@pl.function
def kernel(x: pl.Tensor[[4, 8], pl.UINT64], out: pl.Out[pl.Tensor[[4, 8], pl.UINT64]]):
    tile = pl.load(x, [0, 0], [4, 8])
    return pl.store(pl.add(tile, tile), [0, 0], out)


torch_codegen(kernel)
