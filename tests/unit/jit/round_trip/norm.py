"""Normalizations, both ways."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("norm")

LAYER, RMS, SPMD = LOADED["layer_norm"], LOADED["rms_norm"], LOADED["spmd"]

M = pl.dynamic("M")


@FAMILY.by_hand(LAYER.jit("layer_norm"), *LAYER.make_inputs(0))
@pl.program
class LayerNorm:
    @pl.function(type=pl.FunctionType.Orchestration)
    def layer_norm(
        self,
        x: pl.Tensor[[M, 192], pl.FP32],
        gamma: pl.Tensor[[1, 192], pl.FP32],
        beta: pl.Tensor[[1, 192], pl.FP32],
        out: pl.Out[pl.Tensor[[M, 192], pl.FP32]],
    ) -> pl.Tensor[[M, 192], pl.FP32]:
        for row in pl.parallel(0, M, 64):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="normalize"):
                tile = pl.load(x, [row, 0], [64, 192])
                centered = tile - pl.row_sum(tile) / 192
                variance = pl.row_sum(centered * centered) / 192
                scaled = centered * pl.rsqrt(variance + 1e-5)
                weighted = scaled * pl.load(gamma, [0, 0], [1, 192])
                shifted = weighted + pl.load(beta, [0, 0], [1, 192])
                out = pl.store(shifted, [row, 0], out)
        return out


@FAMILY.by_hand(RMS.jit("rms_norm"), *RMS.make_inputs(0))
@pl.program
class RmsNorm:
    @pl.function(type=pl.FunctionType.InCore)
    def some_rows(
        self,
        x: pl.Tensor[[M, 256], pl.BF16],
        weight: pl.Tensor[[1, 256], pl.BF16],
        eps: pl.Scalar[pl.FP32],
        row: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[M, 256], pl.BF16]],
    ) -> pl.Tensor[[M, 256], pl.BF16]:
        x_bf16: pl.Tile[[32, 256], pl.BF16] = pl.load(x, [row, 0], [32, 256])
        x_fp32: pl.Tile[[32, 256], pl.FP32] = pl.cast(x_bf16, target_type=pl.FP32)
        scratch: pl.Tile[[32, 256], pl.FP32] = pl.create_tile([32, 256], dtype=pl.FP32)
        squares: pl.Tile[[32, 1], pl.FP32] = pl.row_sum(pl.mul(x_fp32, x_fp32), scratch)
        mean: pl.Tile[[32, 1], pl.FP32] = pl.muls(squares, 1.0 / 256)
        rms: pl.Tile[[32, 1], pl.FP32] = pl.sqrt(pl.adds(mean, 1e-6))
        scaled: pl.Tile[[32, 256], pl.FP32] = pl.row_expand_mul(x_fp32, pl.recip(rms))
        w: pl.Tile[[1, 256], pl.FP32] = pl.cast(pl.load(weight, [0, 0], [1, 256]), target_type=pl.FP32)
        normed: pl.Tile[[32, 256], pl.FP32] = pl.col_expand_mul(scaled, w)
        return pl.store(pl.cast(normed, target_type=pl.BF16, mode="rint"), [row, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def rms_norm(
        self,
        x: pl.Tensor[[M, 256], pl.BF16],
        weight: pl.Tensor[[1, 256], pl.BF16],
        eps: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[M, 256], pl.BF16]],
    ) -> pl.Tensor[[M, 256], pl.BF16]:
        for row in pl.parallel(0, M, 32):
            out = self.some_rows(x, weight, 1e-6, row, out)
        return out


@FAMILY.by_hand(SPMD.jit("by_loop"), *SPMD.make_inputs(0))
@pl.program
class ByLoop:
    @pl.function(type=pl.FunctionType.Orchestration)
    def by_loop(
        self, x: pl.Tensor[[192, 96], pl.FP32], out: pl.Out[pl.Tensor[[192, 1], pl.FP32]]
    ) -> pl.Tensor[[192, 1], pl.FP32]:
        for chunk in pl.spmd(12, name_hint="row_norms"):
            tile = pl.load(x, [chunk * 16, 0], [16, 96])
            out = pl.store(pl.sqrt(pl.row_sum(tile * tile)), [chunk * 16, 0], out)
        return out


@FAMILY.by_hand(SPMD.jit("by_index"), *SPMD.make_inputs(0))
@pl.program
class ByIndex:
    @pl.function(type=pl.FunctionType.InCore)
    def row_norms(
        self, x: pl.Tensor[[192, 96], pl.FP32], out: pl.Out[pl.Tensor[[192, 1], pl.FP32]]
    ) -> pl.Tensor[[192, 1], pl.FP32]:
        for chunk in pl.range(pl.tile.get_block_idx(), 12, pl.tile.get_block_num()):
            tile = pl.load(x, [chunk * 16, 0], [16, 96])
            out = pl.store(pl.sqrt(pl.row_sum(tile * tile)), [chunk * 16, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def by_index(
        self, x: pl.Tensor[[192, 96], pl.FP32], out: pl.Out[pl.Tensor[[192, 1], pl.FP32]]
    ) -> pl.Tensor[[192, 1], pl.FP32]:
        with pl.spmd(5):
            out = self.row_norms(x, out)
        return out


@pl.jit
def l1_norm(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [rows, cols])
        pl.store(pl.row_expand_div(tile, pl.row_sum(pl.abs(tile))), [0, 0], out)
    return out


@FAMILY.by_hand(l1_norm, np.zeros((24, 40), np.float32))
@pl.program
class L1Norm:
    @pl.function(type=pl.FunctionType.Orchestration)
    def l1_norm(
        self, x: pl.Tensor[[24, 40], pl.FP32], out: pl.Out[pl.Tensor[[24, 40], pl.FP32]]
    ) -> pl.Tensor[[24, 40], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [0, 0], [24, 40])
            out = pl.store(pl.row_expand_div(tile, pl.row_sum(pl.abs(tile))), [0, 0], out)
        return out
