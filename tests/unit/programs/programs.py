"""Programs that the tests of running share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.passes.pipeline import DEFAULT

HALVES = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Halves:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
        for row in pl.parallel(0, M, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.mul(pl.load(x, [row, 0], [8, 64]), 0.5), [row, n], out)
        return out
"""
"""Halves rows, in parallel; an `n` other than 0 reaches outside of `out`."""

SEVERAL = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Several:
    @pl.function(type=pl.FunctionType.Orchestration)
    def double(self, x: pl.InOut[pl.Tensor[[4], pl.INT32]], by: pl.Scalar[pl.INT32, (0, 9)]):
        for i in pl.range(4):
            pl.write(x, [i], pl.read(x, [i]) * 2 + by)
        return by + 1, x

    @pl.function(type=pl.FunctionType.Orchestration)
    def repeat(self, x: pl.Tensor[[M], pl.BF16], out: pl.Out[pl.Tensor[[M * 2 + 1], pl.BF16]]):
        for i in pl.range(M * 2 + 1):
            pl.write(out, [i], pl.read(x, [i // 3]))
        return out
"""
"""Two entries, with scalars, bounds, results and an extent that is a formula."""

UNDECLARED = """
import tilewright.language as pl

@pl.program
class Undeclared:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4], pl.INT32], y: pl.Tensor[[4], pl.INT32]):
        pl.write(x, [0], pl.read(y, [1]))
"""
"""Writes a tensor that it does not declare as written."""


def program_of(text: str) -> Program:
    program = pl.parse(text)
    assert isinstance(program, Program)
    return program


def rows(count: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((count, 64)).astype(np.float32)


def stage_after(name: str) -> str:
    """Return the name of the stage that a pass leaves, wherever in the pipeline it stands."""
    return f"{[step.name for step in DEFAULT].index(name) + 1:02}_after_{name}"
