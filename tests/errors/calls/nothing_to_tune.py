"""Configurations none of which can be run.

Fix: what each of them raises says it; one that runs is enough.
"""

import numpy as np

import tilewright.language as pl

EXPECTED = "TuningError"


@pl.autotune(configs=[{"ROWS": -1}, {"ROWS": -2}], key=["x"])
@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor], ROWS: int):  # noqa: N803
    for row in pl.parallel(0, x.shape[0], 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [ROWS, 16]), [row, 0], out)
    return out


kernel(np.ones((8, 16), np.float32))
