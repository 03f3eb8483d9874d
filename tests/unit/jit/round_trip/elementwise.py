"""Elementwise kernels, both ways."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("elementwise")

HELLO, CHUNKS = LOADED["hello"], LOADED["elementwise_chunks"]


@FAMILY.by_hand(HELLO.jit("add"), *HELLO.make_inputs(0))
@pl.program
class Hello:
    @pl.function(type=pl.FunctionType.Orchestration)
    def add(
        self,
        a: pl.Tensor[[128, 128], pl.FP32],
        b: pl.Tensor[[128, 128], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
    ) -> pl.Tensor[[128, 128], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.load(a, [0, 0], [128, 128])
            y = pl.load(b, [0, 0], [128, 128])
            out = pl.store(pl.add(x, y), [0, 0], out)
        return out


@FAMILY.by_hand(CHUNKS.jit("by_tile"), *CHUNKS.make_inputs(0))
@pl.program
class Chunks:
    @pl.function(type=pl.FunctionType.Orchestration)
    def by_tile(
        self,
        a: pl.Tensor[[256, 500], pl.FP32],
        b: pl.Tensor[[256, 500], pl.FP32],
        out: pl.Out[pl.Tensor[[256, 500], pl.FP32]],
    ) -> pl.Tensor[[256, 500], pl.FP32]:
        for row in pl.parallel(0, 256, 64):
            for col in pl.parallel(0, 500, 128):
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="difference_of_squares"):
                    x = pl.load(a, [row, col], [64, 128])
                    y = pl.load(b, [row, col], [64, 128])
                    product = pl.mul(pl.add(x, y), pl.sub(x, y))
                    out = pl.store(product, [row, col], out)
        return out


@FAMILY.by_hand(CHUNKS.jit("by_window"), *CHUNKS.make_inputs(0))
@pl.program
class Windows:
    @pl.function(type=pl.FunctionType.Orchestration)
    def by_window(
        self,
        a: pl.Tensor[[256, 500], pl.FP32],
        b: pl.Tensor[[256, 500], pl.FP32],
        out: pl.Out[pl.Tensor[[256, 500], pl.FP32]],
    ) -> pl.Tensor[[256, 500], pl.FP32]:
        for row in pl.parallel(0, 256, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = a[row : row + 64, :]
                y = b[row : row + 64, :]
                out[row : row + 64, :] = (x + y) * (x - y)
        return out


@pl.jit
def axpy(alpha: float, x: pl.Tensor, y: pl.InOut[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [row, 0], [16, x.shape[1]])
            pl.store(alpha * tile + pl.load(y, [row, 0], [16, x.shape[1]]), [row, 0], y)


@FAMILY.by_hand(axpy, 2.5, np.zeros((40, 24), np.float32), np.zeros((40, 24), np.float32))
@pl.program
class Axpy:
    @pl.function(type=pl.FunctionType.Orchestration)
    def axpy(
        self, alpha: pl.Scalar[pl.FP32], x: pl.Tensor[[40, 24], pl.FP32], y: pl.InOut[pl.Tensor[[40, 24], pl.FP32]]
    ):
        for row in pl.parallel(0, 40, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                tile = pl.load(x, [row, 0], [16, 24])
                y = pl.store(2.5 * tile + pl.load(y, [row, 0], [16, 24]), [row, 0], y)
