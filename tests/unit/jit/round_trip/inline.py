"""Kernels with inline helpers, both ways: `@pl.jit.inline`, and the functions and templates of a program."""

from __future__ import annotations

from typing import Any

import numpy as np
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("inline")

Matrix = pl.Tensor[[64, 32], pl.FP32]
MATRIX = np.zeros((64, 32), np.float32)


@pl.jit.inline
def squared(x: pl.Tile[[64, 32], pl.FP32]):
    return x * x


@pl.jit
def tiles_through_a_helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], x.shape)
        pl.store(squared(squared(tile) + 1.0), [0, 0], out)
    return out


@pl.inline
def square(x: Any):
    return pl.mul(x, x)


@FAMILY.by_hand(tiles_through_a_helper, MATRIX)
@pl.program
class TilesThroughATemplate:
    @pl.function(type=pl.FunctionType.Orchestration)
    def tiles_through_a_helper(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [0, 0], [64, 32])
            out = pl.store(square(square(tile) + 1.0), [0, 0], out)
        return out


@pl.jit.inline
def exponentials(t: pl.Tensor):
    return pl.exp(t - pl.row_max(t))


@pl.jit
def tensors_through_a_helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="softmax"):
            window = x[row : row + 16, :]
            out[row : row + 16, :] = exponentials(window) / pl.row_sum(exponentials(window))
    return out


@FAMILY.by_hand(tensors_through_a_helper, MATRIX)
@pl.program
class TensorsThroughAnInlineFunction:
    @pl.function(type=pl.FunctionType.Inline)
    def exponentials(self, t: pl.Tensor[[16, 32], pl.FP32]) -> pl.Tensor[[16, 32], pl.FP32]:
        return pl.exp(t - pl.row_max(t))

    @pl.function(type=pl.FunctionType.Orchestration)
    def tensors_through_a_helper(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        for row in pl.parallel(0, 64, 16):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="softmax"):
                window = x[row : row + 16, :]
                out[row : row + 16, :] = self.exponentials(window) / pl.row_sum(self.exponentials(window))
        return out


@pl.jit.inline
def add_rows(x: pl.Tensor, amount: pl.FP32, row: pl.INDEX, out: pl.Tensor, rows: int = 16):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="add_rows"):
        tile = pl.load(x, [row, 0], [rows, x.shape[1]])
        out = pl.store(tile + amount, [row, 0], out)
    return out


@pl.jit
def scopes_through_a_helper(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.range(0, 32, 16):
        out = add_rows(x, 1.0, row, out)
    for row in pl.range(32, 64, 32):
        out = add_rows(x, amount=-1.0, row=row, out=out, rows=32)
    return out


@FAMILY.by_hand(scopes_through_a_helper, MATRIX)
@pl.program
class ScopesWrittenOut:
    @pl.function(type=pl.FunctionType.Orchestration)
    def scopes_through_a_helper(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        for row in pl.range(0, 32, 16):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="add_rows"):
                out = pl.store(pl.load(x, [row, 0], [16, 32]) + 1.0, [row, 0], out)
        for row in pl.range(32, 64, 32):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="add_rows"):
                out = pl.store(pl.load(x, [row, 0], [32, 32]) + -1.0, [row, 0], out)
        return out
