"""A task of something that is no function of the program."""

import numpy as np

import tilewright.language as pl

EXPECTED = "DirectiveError"


@pl.jit.inline
def helper(x, out):
    return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out, task = pl.submit(helper, x, out)
    return out


kernel(np.zeros((4, 8), np.float32))
