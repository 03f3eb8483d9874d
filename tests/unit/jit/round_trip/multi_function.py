"""Kernels that call several others, both ways: each set of arguments has a function of its own."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("multi-function")

DAG, SCALARS = LOADED["vector_dag"], LOADED["scalar_ops"]

Matrix = pl.Tensor[[128, 128], pl.FP32]


@FAMILY.by_hand(DAG.jit("vector_dag"), *DAG.make_inputs(0))
@pl.program
class VectorDag:
    @pl.function(type=pl.FunctionType.InCore)
    def sub(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        lhs = pl.load(a, [0, 0], [128, 128])
        rhs = pl.load(b, [0, 0], [128, 128])
        return pl.store(pl.sub(lhs, rhs), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def square(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [128, 128])
        return pl.store(pl.mul(tile, tile), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def add(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        lhs = pl.load(a, [0, 0], [128, 128])
        rhs = pl.load(b, [0, 0], [128, 128])
        return pl.store(pl.add(lhs, rhs), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def add_scalar(self, x: Matrix, value: pl.Scalar[pl.FP32], out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [128, 128])
        return pl.store(pl.adds(tile, 1.0), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def div(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        lhs = pl.load(a, [0, 0], [128, 128])
        rhs = pl.load(b, [0, 0], [128, 128])
        return pl.store(pl.div(lhs, rhs), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def vector_dag(self, a: Matrix, b: Matrix, out: pl.Out[Matrix]) -> Matrix:
        diff = self.sub(a, b, pl.create_tensor([128, 128], dtype=pl.FP32))
        above = self.square(diff, pl.create_tensor([128, 128], dtype=pl.FP32))
        a_squared = self.square(a, pl.create_tensor([128, 128], dtype=pl.FP32))
        b_squared = self.square(b, pl.create_tensor([128, 128], dtype=pl.FP32))
        total = self.add(a_squared, b_squared, pl.create_tensor([128, 128], dtype=pl.FP32))
        below = self.add_scalar(total, 1.0, pl.create_tensor([128, 128], dtype=pl.FP32))
        return self.div(above, below, out)


@FAMILY.by_hand(SCALARS.jit("scale_bands"), *SCALARS.make_inputs(0))
@pl.program
class ScaleBands:
    @pl.function(type=pl.FunctionType.Orchestration)
    def scale_bands(
        self,
        x: pl.Tensor[[128, 64], pl.FP32],
        gains: pl.Tensor[[8], pl.FP32],
        limit: pl.Scalar[pl.FP32],
        offset: pl.Scalar[pl.INT32],
        out: pl.Out[pl.Tensor[[128, 64], pl.FP32]],
    ) -> pl.Tensor[[128, 64], pl.FP32]:
        for band in pl.range(8):
            row = band * 16
            gain = pl.read(gains, [band])
            while gain > 1.25:
                gain = gain / 2.0
            with pl.at(level=pl.Level.CORE_GROUP):
                if gain > 0.0:
                    tile = pl.load(x, [row, 0], [16, 64])
                    out = pl.store(pl.add(pl.mul(tile, gain), -3.0), [row, 0], out)
                else:
                    flat = pl.tile.full([16, 64], dtype=pl.FP32, value=0.0)
                    out = pl.store(pl.adds(flat, -3.0), [row, 0], out)
        return out


@pl.jit.incore
def copied(x: pl.Tensor, factor: float, out: pl.Out[pl.Tensor]):
    return pl.store(pl.load(x, [0, 0], x.shape) * factor, [0, 0], out)


@pl.jit
def one_helper_three_ways(x: pl.Tensor, y: pl.Tensor, p: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor]):
    middle = pl.create_tensor(x.shape, dtype=x.dtype)
    middle = copied(x, 2.0, middle)
    p = copied(middle, 3.0, p)
    q = copied(y, 2.0, q)
    return p, q


Small, Large = pl.Tensor[[8, 16], pl.FP32], pl.Tensor[[24, 16], pl.FP32]
SMALL, LARGE = np.zeros((8, 16), np.float32), np.zeros((24, 16), np.float32)


@FAMILY.by_hand(one_helper_three_ways, SMALL, LARGE, SMALL, LARGE)
@pl.program
class OneHelperThreeWays:
    @pl.function(type=pl.FunctionType.InCore)
    def copied(self, x: Small, factor: pl.Scalar[pl.FP32], out: pl.Out[Small]) -> Small:
        return pl.store(pl.mul(pl.load(x, [0, 0], [8, 16]), 2.0), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def copied_1(self, x: Small, factor: pl.Scalar[pl.FP32], out: pl.Out[Small]) -> Small:
        return pl.store(pl.mul(pl.load(x, [0, 0], [8, 16]), 3.0), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def copied_2(self, x: Large, factor: pl.Scalar[pl.FP32], out: pl.Out[Large]) -> Large:
        return pl.store(pl.mul(pl.load(x, [0, 0], [24, 16]), 2.0), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def one_helper_three_ways(self, x: Small, y: Large, p: pl.Out[Small], q: pl.Out[Large]) -> pl.Tuple[Small, Large]:
        middle = pl.create_tensor([8, 16], dtype=pl.FP32)
        middle = self.copied(x, 2.0, middle)
        p = self.copied_1(middle, 3.0, p)
        q = self.copied_2(y, 2.0, q)
        return p, q


class Affine:
    """Kernels as methods: the instance's numbers are part of their code."""

    def __init__(self, scale: float, shift: float) -> None:
        self.scale, self.shift = scale, shift

    @pl.jit.incore
    def apply(self, x: pl.Tensor, row: pl.INDEX, out: pl.Out[pl.Tensor]):
        tile = pl.load(x, [row, 0], [8, x.shape[1]])
        return pl.store(tile * self.scale + self.shift, [row, 0], out)

    @pl.jit
    def main(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for row in pl.parallel(0, x.shape[0], 8):
            out = self.apply(x, row, out)
        return out


HALF_PLUS_ONE = Affine(0.5, 1.0)


@FAMILY.by_hand(HALF_PLUS_ONE.main, LARGE)
@pl.program
class HalfPlusOne:
    @pl.function(type=pl.FunctionType.InCore)
    def apply(self, x: Large, row: pl.Scalar[pl.INDEX], out: pl.Out[Large]) -> Large:
        tile = pl.load(x, [row, 0], [8, 16])
        return pl.store(pl.add(pl.mul(tile, 0.5), 1.0), [row, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: Large, out: pl.Out[Large]) -> Large:
        for row in pl.parallel(0, 24, 8):
            out = self.apply(x, row, out)
        return out


@pl.function(type=pl.FunctionType.InCore)
def negated(x: Small, out: pl.Out[Small]) -> Small:
    return pl.store(pl.neg(pl.load(x, [0, 0], [8, 16])), [0, 0], out)


@pl.jit
def calls_a_plain_function(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return negated(x, out)


@FAMILY.by_hand(calls_a_plain_function, SMALL)
@pl.program
class CallsAPlainFunction:
    @pl.function(type=pl.FunctionType.Orchestration)
    def calls_a_plain_function(self, x: Small, out: pl.Out[Small]) -> Small:
        return negated(x, out)
