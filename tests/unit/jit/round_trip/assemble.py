"""Results assembled from parts, both ways."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("assemble")

ROPE = LOADED["assemble"]

Heads = pl.Tensor[[4, 64, 64], pl.FP32]
Head = pl.Tensor[[64, 64], pl.FP32]


@FAMILY.by_hand(ROPE.jit("rope"), *ROPE.make_inputs(0))
@pl.program
class Rope:
    @pl.function(type=pl.FunctionType.InCore)
    def rotate(self, x: Head, cos: Head, sin: Head, out: pl.Out[Head]) -> Head:
        tile = pl.load(x, [0, 0], [64, 64])
        turned = pl.create_tile([64, 64], dtype=pl.FP32)
        turned = pl.assemble(turned, pl.neg(tile[:, 32:]), [0, 0])
        turned = pl.assemble(turned, tile[:, :32], [0, 32])
        c = pl.load(cos, [0, 0], [64, 64])
        s = pl.load(sin, [0, 0], [64, 64])
        return pl.store(tile * c + turned * s, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def rope(self, x: Heads, cos: Head, sin: Head, out: pl.Out[Heads]) -> Heads:
        for h in pl.range(4):
            head = pl.create_tensor([64, 64], dtype=pl.FP32)
            head = self.rotate(x[h], cos, sin, head)
            out[h : h + 1, :, :] = head
        return out


@pl.jit
def concatenate(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, left = a.shape
    right = b.shape[1]
    for row in pl.range(0, rows, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            both = pl.create_tile([16, left + right], dtype=a.dtype)
            both = pl.assemble(both, pl.load(a, [row, 0], [16, left]), [0, 0])
            both = pl.assemble(both, pl.load(b, [row, 0], [16, right]), [0, left])
            pl.store(both, [row, 0], out)
    return out


@FAMILY.by_hand(concatenate, np.zeros((32, 16), np.int32), np.zeros((32, 48), np.int32), np.zeros((32, 64), np.int32))
@pl.program
class Concatenate:
    @pl.function(type=pl.FunctionType.Orchestration)
    def concatenate(
        self,
        a: pl.Tensor[[32, 16], pl.INT32],
        b: pl.Tensor[[32, 48], pl.INT32],
        out: pl.Out[pl.Tensor[[32, 64], pl.INT32]],
    ) -> pl.Tensor[[32, 64], pl.INT32]:
        for row in pl.range(0, 32, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                empty = pl.create_tile([16, 64], dtype=pl.INT32)
                half = pl.assemble(empty, pl.load(a, [row, 0], [16, 16]), [0, 0])
                both = pl.assemble(half, pl.load(b, [row, 0], [16, 48]), [0, 16])
                out = pl.store(both, [row, 0], out)
        return out


@pl.jit
def swap_halves(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    half = cols // 2
    for row in pl.parallel(0, rows, 8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="swap"):
            out[row : row + 8, half:] = x[row : row + 8, :half]
            out[row : row + 8, :half] = x[row : row + 8, half:]
    return out


@FAMILY.by_hand(swap_halves, np.zeros((24, 32), np.float32))
@pl.program
class SwapHalves:
    @pl.function(type=pl.FunctionType.Orchestration)
    def swap_halves(
        self, x: pl.Tensor[[24, 32], pl.FP32], out: pl.Out[pl.Tensor[[24, 32], pl.FP32]]
    ) -> pl.Tensor[[24, 32], pl.FP32]:
        for row in pl.parallel(0, 24, 8):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="swap"):
                out = pl.assemble(out, pl.slice(x, [8, 16], [row, 0]), [row, 16])
                out = pl.assemble(out, pl.slice(x, [8, 16], [row, 16]), [row, 0])
        return out
