"""Kernels with opaque parts, both ways: functions with loops and kernel scopes of their own."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("opaque")

CROSS = LOADED["cross_function"]

Matrix = pl.Tensor[[96, 128], pl.FP32]
Column = pl.Tensor[[96, 1], pl.FP32]


@FAMILY.by_hand(CROSS.jit("cross_function"), *CROSS.make_inputs(0))
@pl.program
class CrossFunction:
    @pl.function(type=pl.FunctionType.InCore)
    def lerp(self, a: Matrix, b: Matrix, weight: pl.Scalar[pl.FP32], out: pl.Out[Matrix]) -> Matrix:
        for i in pl.range(3):
            x = pl.load(a, [i * 32, 0], [32, 128])
            y = pl.load(b, [i * 32, 0], [32, 128])
            out = pl.store(x + 0.25 * (y - x), [i * 32, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def moments(
        self, x: Matrix, index: pl.Scalar[pl.INDEX], average: pl.Out[Column], spread: pl.Out[Column]
    ) -> pl.Tuple[Column, Column]:
        tile = pl.load(x, [index * 32, 0], [32, 128])
        m = pl.row_sum(tile) / 128
        centered = tile - m
        average = pl.store(m, [index * 32, 0], average)
        spread = pl.store(pl.sqrt(pl.row_sum(centered * centered) / 128), [index * 32, 0], spread)
        return average, spread

    @pl.function(type=pl.FunctionType.Opaque)
    def standardize(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        average = pl.create_tensor([96, 1], dtype=pl.FP32)
        spread = pl.create_tensor([96, 1], dtype=pl.FP32)
        for i in pl.parallel(3):
            average, spread = self.moments(x, i, average, spread)
        for i in pl.parallel(3):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="apply_moments"):
                tile = pl.load(x, [i * 32, 0], [32, 128]) - pl.load(average, [i * 32, 0], [32, 1])
                tile = tile / pl.load(spread, [i * 32, 0], [32, 1])
                out = pl.store(tile, [i * 32, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def cross_function(self, x: Matrix, y: Matrix, weight: pl.Scalar[pl.FP32], out: pl.Out[Matrix]) -> Matrix:
        standard = pl.create_tensor([96, 128], dtype=pl.FP32)
        standard = self.standardize(x, standard)
        return self.lerp(standard, y, 0.25, out)


@pl.jit.opaque
def scaled(x: pl.Tensor, factor: pl.FP32, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [8, x.shape[1]]) * factor, [row, 0], out)
    return out


@pl.jit
def twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    middle = pl.create_tensor(x.shape, dtype=x.dtype)
    middle = scaled(x, 3.0, middle)
    return scaled(middle, 3.0, out)


Small = pl.Tensor[[16, 48], pl.FP32]


@FAMILY.by_hand(twice, np.zeros((16, 48), np.float32))
@pl.program
class Twice:
    @pl.function(type=pl.FunctionType.Opaque)
    def scaled(self, x: Small, factor: pl.Scalar[pl.FP32], out: pl.Out[Small]) -> Small:
        for row in pl.parallel(0, 16, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.mul(pl.load(x, [row, 0], [8, 48]), 3.0), [row, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def twice(self, x: Small, out: pl.Out[Small]) -> Small:
        middle = pl.create_tensor([16, 48], dtype=pl.FP32)
        middle = self.scaled(x, 3.0, middle)
        return self.scaled(middle, 3.0, out)


@pl.jit.opaque
def halve_until(gains: pl.Tensor, position: pl.INDEX, limit: pl.FP32):
    gain = pl.read(gains, [position])
    while gain > limit:
        gain = gain / 2.0
    return gain


@pl.jit
def scalar_from_a_part(x: pl.Tensor, gains: pl.Tensor, out: pl.Out[pl.Tensor]):
    for band in pl.range(gains.shape[0]):
        gain = halve_until(gains, band, 1.5)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale"):
            pl.store(pl.load(x, [band * 8, 0], [8, x.shape[1]]) * gain, [band * 8, 0], out)
    return out


@FAMILY.by_hand(
    scalar_from_a_part, np.zeros((32, 16), np.float32), np.zeros((4,), np.float32), np.zeros((32, 16), np.float32)
)
@pl.program
class ScalarFromAPart:
    @pl.function(type=pl.FunctionType.Opaque)
    def halve_until(
        self, gains: pl.Tensor[[4], pl.FP32], position: pl.Scalar[pl.INDEX], limit: pl.Scalar[pl.FP32]
    ) -> pl.Scalar[pl.FP32]:
        gain = pl.read(gains, [position])
        while gain > 1.5:
            gain = gain / 2.0
        return gain

    @pl.function(type=pl.FunctionType.Orchestration)
    def scalar_from_a_part(
        self,
        x: pl.Tensor[[32, 16], pl.FP32],
        gains: pl.Tensor[[4], pl.FP32],
        out: pl.Out[pl.Tensor[[32, 16], pl.FP32]],
    ) -> pl.Tensor[[32, 16], pl.FP32]:
        for band in pl.range(4):
            gain = self.halve_until(gains, band, 1.5)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale"):
                out = pl.store(pl.mul(pl.load(x, [band * 8, 0], [8, 16]), gain), [band * 8, 0], out)
        return out
