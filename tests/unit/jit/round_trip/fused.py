"""Fused kernels, both ways: several steps between one load and one store."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("fused")

LINEAR, FFN = LOADED["fused_linear"], LOADED["ffn"]

M, N, T = pl.dynamic("M"), pl.dynamic("N"), pl.dynamic("T")


@FAMILY.by_hand(LINEAR.jit("fused_linear"), *LINEAR.make_inputs(0))
@pl.program
class FusedLinear:
    @pl.function(type=pl.FunctionType.InCore)
    def linear_relu(
        self,
        x: pl.Tensor[[M, 128], pl.BF16],
        w: pl.Tensor[[128, N], pl.BF16],
        bias: pl.Tensor[[1, N], pl.FP32],
        row: pl.Scalar[pl.INDEX],
        col: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ) -> pl.Tensor[[M, N], pl.BF16]:
        x_l1 = pl.load(x, [row, 0], [64, 128], target_memory=pl.Mem.Mat)
        w_l1 = pl.load(w, [0, col], [128, 64], target_memory=pl.Mem.Mat)
        x_l0 = pl.move(x_l1, target_memory=pl.Mem.Left)
        w_l0 = pl.move(w_l1, target_memory=pl.Mem.Right)
        acc = pl.matmul(x_l0, w_l0)
        bias_row = pl.load(bias, [0, col], [1, 64])
        linear = pl.col_expand_add(pl.move(acc, target_memory=pl.Mem.Vec), bias_row)
        result = pl.cast(pl.relu(linear), target_type=pl.BF16, mode="rint")
        return pl.store(result, [row, col], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def fused_linear(
        self,
        x: pl.Tensor[[M, 128], pl.BF16],
        w: pl.Tensor[[128, N], pl.BF16],
        bias: pl.Tensor[[1, N], pl.FP32],
        out: pl.Out[pl.Tensor[[M, N], pl.BF16]],
    ) -> pl.Tensor[[M, N], pl.BF16]:
        for row in pl.parallel(0, M, 64):
            for col in pl.parallel(0, N, 64):
                out = self.linear_relu(x, w, bias, row, col, out)
        return out


@FAMILY.by_hand(FFN.jit("feed_forward"), *FFN.make_inputs(0))
@pl.program
class FeedForward:
    @pl.function(type=pl.FunctionType.InCore)
    def gate_up(
        self,
        x: pl.Tensor[[T, 128], pl.BF16],
        w_gate: pl.Tensor[[128, 256], pl.BF16],
        w_up: pl.Tensor[[128, 256], pl.BF16],
        row: pl.Scalar[pl.INDEX],
        col: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[T, 256], pl.BF16]],
    ) -> pl.Tensor[[T, 256], pl.BF16]:
        gate = pl.tile.full([32, 64], dtype=pl.FP32, value=0.0)
        up = pl.tile.full([32, 64], dtype=pl.FP32, value=0.0)
        for k in pl.pipeline(0, 128, 64, stage=2):
            tile = pl.load(x, [row, k], [32, 64])
            gate = pl.matmul_acc(gate, tile, pl.load(w_gate, [k, col], [64, 64]))
            up = pl.matmul_acc(up, tile, pl.load(w_up, [k, col], [64, 64]))
        swiglu = gate / (pl.exp(-gate) + 1.0) * up
        return pl.store(pl.cast(swiglu, pl.BF16, mode="rint"), [row, col], out)

    @pl.function(type=pl.FunctionType.InCore)
    def down(
        self,
        x: pl.Tensor[[T, 256], pl.BF16],
        w: pl.Tensor[[256, 128], pl.BF16],
        row: pl.Scalar[pl.INDEX],
        col: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[T, 128], pl.BF16]],
    ) -> pl.Tensor[[T, 128], pl.BF16]:
        acc = pl.tile.full([32, 64], dtype=pl.FP32, value=0.0)
        for k in pl.pipeline(0, 256, 64, stage=2):
            acc = pl.matmul_acc(acc, pl.load(x, [row, k], [32, 64]), pl.load(w, [k, col], [64, 64]))
        return pl.store(pl.cast(acc, pl.BF16, mode="rint"), [row, col], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def feed_forward(
        self,
        x: pl.Tensor[[T, 128], pl.BF16],
        w_gate: pl.Tensor[[128, 256], pl.BF16],
        w_up: pl.Tensor[[128, 256], pl.BF16],
        w_down: pl.Tensor[[256, 128], pl.BF16],
        out: pl.Out[pl.Tensor[[T, 128], pl.BF16]],
    ) -> pl.Tensor[[T, 128], pl.BF16]:
        inner = pl.create_tensor([T, 256], dtype=pl.BF16)
        for row in pl.parallel(0, T, 32):
            for col in pl.parallel(0, 256, 64):
                inner = self.gate_up(x, w_gate, w_up, row, col, inner)
        for row in pl.parallel(0, T, 32):
            for col in pl.parallel(0, 128, 64):
                out = self.down(inner, w_down, row, col, out)
        return out


@pl.jit
def residual(x: pl.Tensor, y: pl.Tensor, bias: pl.Tensor | None, clip: bool, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    for row in pl.parallel(0, rows, 32):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="add_up"):
            tile = pl.load(x, [row, 0], [32, cols]) + pl.load(y, [row, 0], [32, cols])
            if bias is not None:
                tile += pl.load(bias, [0, 0], [1, cols])
            if clip:
                tile = pl.maximum(pl.minimum(tile, 6.0), 0.0)
            pl.store(tile, [row, 0], out)
    return out


MATRIX, ROW = np.zeros((64, 96), np.float32), np.zeros((1, 96), np.float32)


@FAMILY.by_hand(residual, MATRIX, MATRIX, ROW, True, MATRIX)
@pl.program
class WithBiasClipped:
    @pl.function(type=pl.FunctionType.Orchestration)
    def residual(
        self,
        x: pl.Tensor[[64, 96], pl.FP32],
        y: pl.Tensor[[64, 96], pl.FP32],
        bias: pl.Tensor[[1, 96], pl.FP32],
        clip: pl.Scalar[pl.BOOL],
        out: pl.Out[pl.Tensor[[64, 96], pl.FP32]],
    ) -> pl.Tensor[[64, 96], pl.FP32]:
        for row in pl.parallel(0, 64, 32):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="add_up"):
                total = pl.add(pl.load(x, [row, 0], [32, 96]), pl.load(y, [row, 0], [32, 96]))
                biased = pl.add(total, pl.load(bias, [0, 0], [1, 96]))
                out = pl.store(pl.maximum(pl.minimum(biased, 6.0), 0.0), [row, 0], out)
        return out


@FAMILY.by_hand(residual, MATRIX, MATRIX, None, False)
@pl.program
class WithoutBias:
    @pl.function(type=pl.FunctionType.Orchestration)
    def residual(
        self,
        x: pl.Tensor[[64, 96], pl.FP32],
        y: pl.Tensor[[64, 96], pl.FP32],
        clip: pl.Scalar[pl.BOOL],
        out: pl.Out[pl.Tensor[[64, 96], pl.FP32]],
    ) -> pl.Tensor[[64, 96], pl.FP32]:
        for row in pl.parallel(0, 64, 32):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="add_up"):
                total = pl.add(pl.load(x, [row, 0], [32, 96]), pl.load(y, [row, 0], [32, 96]))
                out = pl.store(total, [row, 0], out)
        return out
