"""Softmax, both ways."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("softmax")

SOFTMAX = LOADED["softmax"]

M = pl.dynamic("M")


@FAMILY.by_hand(SOFTMAX.jit("softmax"), *SOFTMAX.make_inputs(0))
@pl.program
class Softmax:
    @pl.function(type=pl.FunctionType.Orchestration)
    def softmax(
        self, x: pl.Tensor[[M, 1024], pl.FP32], out: pl.Out[pl.Tensor[[M, 1024], pl.FP32]]
    ) -> pl.Tensor[[M, 1024], pl.FP32]:
        for row in pl.parallel(0, M, 32):
            with pl.at(level=pl.Level.CORE_GROUP):
                tile = pl.load(x, [row, 0], [32, 1024])
                e = pl.exp(pl.sub(tile, pl.row_max(tile)))
                out = pl.store(pl.div(e, pl.row_sum(e)), [row, 0], out)
        return out


@pl.jit
def expanded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    for r in pl.parallel(0, rows, 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [64, cols])
            e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
            pl.store(pl.row_expand_div(e, pl.row_sum(e)), [r, 0], out)
    return out


@FAMILY.by_hand(expanded, np.zeros((100, 128), np.float32))
@pl.program
class Expanded:
    @pl.function(type=pl.FunctionType.Orchestration)
    def expanded(
        self, x: pl.Tensor[[100, 128], pl.FP32], out: pl.Out[pl.Tensor[[100, 128], pl.FP32]]
    ) -> pl.Tensor[[100, 128], pl.FP32]:
        for r in pl.parallel(0, 100, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r, 0], [64, 128])
                e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
                out = pl.store(pl.row_expand_div(e, pl.row_sum(e)), [r, 0], out)
        return out


@pl.jit
def over_windows(x: pl.Tensor, temperature: float, out: pl.Out[pl.Tensor]):
    for r in pl.range(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = x[r : r + 16, :] * (1.0 / temperature)
            e = pl.exp(t - pl.row_max(t))
            out[r : r + 16, :] = e / pl.row_sum(e)
    return out


@FAMILY.by_hand(over_windows, np.zeros((64, 32), np.float32), 4.0)
@pl.program
class OverWindows:
    @pl.function(type=pl.FunctionType.Orchestration)
    def over_windows(
        self,
        x: pl.Tensor[[64, 32], pl.FP32],
        temperature: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ) -> pl.Tensor[[64, 32], pl.FP32]:
        for r in pl.range(0, 64, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.mul(pl.slice(x, [16, 32], [r, 0]), 0.25)
                e = pl.exp(pl.sub(t, pl.row_max(t)))
                out = pl.assemble(out, pl.div(e, pl.row_sum(e)), [r, 0])
        return out
