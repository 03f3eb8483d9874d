"""An argument of a type that does not say what code depends on."""

from dataclasses import dataclass

import numpy as np

import tilewright.language as pl

EXPECTED = "AnnotationError"


@dataclass(frozen=True)
class Tiling:
    rows: int


@pl.jit
def kernel(x: pl.Tensor, tiling: Tiling, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        return pl.store(pl.load(x, [0, 0], [tiling.rows, 8]), [0, 0], out)


kernel(np.zeros((4, 8), np.float32), Tiling(4))
