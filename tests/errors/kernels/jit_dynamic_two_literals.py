"""One variable that holds two names in one program."""

import numpy as np

import tilewright.language as pl

EXPECTED = "DynamicConflictError"
M = pl.dynamic("M")


def helper():
    M = pl.dynamic("rows")

    @pl.jit.incore
    def copied(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        x.bind_dynamic(0, M)
        return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)

    return copied


copied = helper()


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    x.bind_dynamic(0, M)
    return copied(x, out)


kernel(np.zeros((4, 8), np.float32))
