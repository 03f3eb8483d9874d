"""An op called as plain Python."""

import tilewright.language as pl

EXPECTED = "OutsideKernelError"


pl.exp(1.0)
