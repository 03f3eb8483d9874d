"""A jitdump in a folder that is none."""

import os

import tilewright.language as pl

EXPECTED = "ProfileWarning"

os.environ["TILEWRIGHT_PERF"] = "jitdump"
os.environ["JITDUMPDIR"] = "/dev/null"


@pl.jit
def kernel(x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 16]) * 2.0, [0, 0], out)
    return out


kernel.compile()
