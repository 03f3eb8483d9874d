"""A barrier between the cores in a launch of fewer blocks."""

import tilewright.language as pl
from tilewright import ir

EXPECTED = "AttributeValueError"


@pl.function(type=pl.FunctionType.Orchestration)
def kernel(out: pl.Out[pl.Tensor[[8], pl.INT32]]):
    with pl.spmd(8):
        i = pl.tile.get_block_idx()
        pl.write(out, [i], 1)
        pl.system.syncall()
    return out


ir.compile(kernel)
