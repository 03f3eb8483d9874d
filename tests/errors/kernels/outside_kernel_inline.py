"""A template called as plain Python."""

import tilewright.language as pl

EXPECTED = "OutsideKernelError"


@pl.inline
def twice(t):
    return pl.add(t, t)


twice(1.0)
