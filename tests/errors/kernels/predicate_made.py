"""A task that may be skipped and whose result is made by it."""

import tilewright.language as pl
from tilewright import ir

EXPECTED = "PredicateError"


@pl.program
class Skips:
    @pl.function(type=pl.FunctionType.InCore)
    def double(self, x: pl.Tensor[[4], pl.FP32]):
        return pl.add(x, x)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4], pl.FP32], flag: pl.Tensor[[1], pl.INT32]):
        y, task = pl.submit(self.double, x, predicate=flag[0] > 0)
        return y


ir.compile(Skips)
