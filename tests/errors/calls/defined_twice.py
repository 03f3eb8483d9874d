"""A program put together by hand, one of whose functions stands there twice.

Fix: give each function a name of its own. Where a pass of ours has made it, that is a bug of ours.
"""

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.core.verify import verify

EXPECTED = "VerificationError"


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], out)


verify(Program("twice", (kernel, kernel), kernel.span))
