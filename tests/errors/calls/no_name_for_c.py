"""A library for C whose function has a name that C does not take.

Fix: export_c("library", name="twelve").
"""

import tilewright.language as pl

EXPECTED = "ExportError"


@pl.jit
def zwölf(x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 16]) * 12.0, [0, 0], out)
    return out


zwölf.compile().export_c("library")
