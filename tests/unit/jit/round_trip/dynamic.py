"""Kernels with dynamic axes, both ways: named by `bind_dynamic`, by an annotation, or by a helper."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("dynamic")

LOG_SOFTMAX = LOADED["dynamic_valid_shape"]

M, N = pl.dynamic("M"), pl.dynamic("N")


@FAMILY.by_hand(LOG_SOFTMAX.jit("log_softmax"), *LOG_SOFTMAX.make_inputs(0))
@pl.program
class LogSoftmax:
    @pl.function(type=pl.FunctionType.InCore)
    def some_rows(
        self, x: pl.Tensor[[M, N], pl.FP32], row: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]
    ) -> pl.Tensor[[M, N], pl.FP32]:
        height = pl.min(32, M - row)
        raw = pl.load(x, [row, 0], [32, 128], valid_shape=[height, N])
        top = pl.row_max(pl.fillpad(raw, pad_value=pl.PadValue.min))
        shifted = pl.row_expand_sub(raw, top)
        total = pl.row_sum(pl.fillpad(pl.exp(shifted), pad_value=pl.PadValue.zero))
        result = pl.row_expand_sub(shifted, pl.log(total))
        return pl.store(pl.set_validshape(result, height, N), [row, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def log_softmax(
        self, x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]
    ) -> pl.Tensor[[M, N], pl.FP32]:
        for row in pl.parallel(0, M, 32):
            out = self.some_rows(x, row, out)
        return out


@pl.jit
def bound(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows = pl.dynamic("rows")
    x.bind_dynamic(0, rows)
    for row in pl.parallel(0, rows, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [16, x.shape[1]]) * 2.0, [row, 0], out)
    return out


ROWS = pl.dynamic("rows")


@FAMILY.by_hand(bound, np.zeros((50, 24), np.float32))
@pl.program
class Bound:
    @pl.function(type=pl.FunctionType.Orchestration)
    def bound(
        self, x: pl.Tensor[[ROWS, 24], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 24], pl.FP32]]
    ) -> pl.Tensor[[ROWS, 24], pl.FP32]:
        for row in pl.parallel(0, ROWS, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.mul(pl.load(x, [row, 0], [16, 24]), 2.0), [row, 0], out)
        return out


@pl.jit.incore
def doubled(x: pl.Tensor[[M, 32], pl.FP32], row: pl.INDEX, out: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    tile = pl.load(x, [row, 0], [16, 32])
    return pl.store(tile + tile, [row, 0], out)


@pl.jit
def told_by_a_helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    middle = pl.create_tensor(x.shape, dtype=x.dtype)
    for row in pl.range(0, x.shape[0], 16):
        middle = doubled(x, row, middle)
    for row in pl.range(0, x.shape[0], 16):
        out = doubled(middle, row, out)
    return out


@FAMILY.by_hand(told_by_a_helper, np.zeros((33, 32), np.float32))
@pl.program
class ToldByAHelper:
    @pl.function(type=pl.FunctionType.InCore)
    def doubled(
        self, x: pl.Tensor[[M, 32], pl.FP32], row: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[M, 32], pl.FP32]]
    ) -> pl.Tensor[[M, 32], pl.FP32]:
        tile = pl.load(x, [row, 0], [16, 32])
        return pl.store(pl.add(tile, tile), [row, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def told_by_a_helper(
        self, x: pl.Tensor[[M, 32], pl.FP32], out: pl.Out[pl.Tensor[[M, 32], pl.FP32]]
    ) -> pl.Tensor[[M, 32], pl.FP32]:
        middle = pl.create_tensor([M, 32], dtype=pl.FP32)
        for row in pl.range(0, M, 16):
            middle = self.doubled(x, row, middle)
        for row in pl.range(0, M, 16):
            out = self.doubled(middle, row, out)
        return out


@pl.jit
def outer(a: pl.Tensor[[M, 1], pl.FP32], b: pl.Tensor[[1, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    for row in pl.parallel(0, M, 16):
        for col in pl.parallel(0, N, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(a, [row, 0], [16, 1]) * pl.load(b, [0, col], [1, 64]), [row, col], out)
    return out


@FAMILY.by_hand(outer)
@pl.program
class Outer:
    @pl.function(type=pl.FunctionType.Orchestration)
    def outer(
        self, a: pl.Tensor[[M, 1], pl.FP32], b: pl.Tensor[[1, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]
    ) -> pl.Tensor[[M, N], pl.FP32]:
        for row in pl.parallel(0, M, 16):
            for col in pl.parallel(0, N, 64):
                with pl.at(level=pl.Level.CORE_GROUP):
                    column = pl.load(a, [row, 0], [16, 1])
                    out = pl.store(pl.mul(column, pl.load(b, [0, col], [1, 64])), [row, col], out)
        return out
