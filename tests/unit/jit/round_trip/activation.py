"""Activation functions, both ways."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("activation")

ACTIVATIONS = LOADED["activations"]

Matrix = pl.Tensor[[64, 256], pl.FP32]


@FAMILY.by_hand(ACTIVATIONS.jit("activations"), *ACTIVATIONS.make_inputs(0))
@pl.program
class Activations:
    @pl.function(type=pl.FunctionType.InCore)
    def relu(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [64, 256])
        return pl.store(pl.relu(tile), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def silu(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [64, 256])
        sigmoid = 1.0 / (pl.exp(-tile) + 1.0)
        return pl.store(tile * sigmoid, [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def gelu(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        tile = pl.load(x, [0, 0], [64, 256])
        cubic = tile + 0.044715 * tile * tile * tile
        inner = 1.5957691216057308 * cubic
        sigmoid = 1.0 / (pl.exp(-inner) + 1.0)
        return pl.store(tile * sigmoid, [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def swiglu(self, gate: Matrix, up: Matrix, out: pl.Out[Matrix]) -> Matrix:
        g = pl.load(gate, [0, 0], [64, 256])
        u = pl.load(up, [0, 0], [64, 256])
        sigmoid = 1.0 / (pl.exp(-g) + 1.0)
        return pl.store(g * sigmoid * u, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def activations(
        self,
        x: Matrix,
        up: Matrix,
        relu_out: pl.Out[Matrix],
        silu_out: pl.Out[Matrix],
        gelu_out: pl.Out[Matrix],
        swiglu_out: pl.Out[Matrix],
    ) -> pl.Tuple[Matrix, Matrix, Matrix, Matrix]:
        relu_out = self.relu(x, relu_out)
        silu_out = self.silu(x, silu_out)
        gelu_out = self.gelu(x, gelu_out)
        swiglu_out = self.swiglu(x, up, swiglu_out)
        return relu_out, silu_out, gelu_out, swiglu_out


@pl.jit
def leaky_relu(x: pl.Tensor, slope: pl.FP32, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    for row in pl.parallel(0, rows, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(x, [row, 0], [32, cols])
            pl.store(pl.maximum(tile, tile * slope), [row, 0], out)
    return out


@FAMILY.by_hand(leaky_relu, np.zeros((80, 48), np.float32), 0.25)
@pl.program
class LeakyRelu:
    @pl.function(type=pl.FunctionType.Orchestration)
    def leaky_relu(
        self, x: pl.Tensor[[80, 48], pl.FP32], slope: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[80, 48], pl.FP32]]
    ) -> pl.Tensor[[80, 48], pl.FP32]:
        for row in pl.parallel(0, 80, 32):
            with pl.at(level=pl.Level.CORE_GROUP):
                tile = pl.load(x, [row, 0], [32, 48])
                out = pl.store(pl.maximum(tile, pl.mul(tile, 0.25)), [row, 0], out)
        return out


@pl.jit
def softplus(x: pl.Tensor, out: pl.Out[pl.Tensor], beta: int = 2):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.cast(pl.load(x, [0, 0], x.shape), pl.FP32)
        smooth = pl.log(pl.exp(tile * float(beta)) + 1.0) * (1 / beta)
        pl.store(pl.cast(smooth, x.dtype, mode="rint"), [0, 0], out)
    return out


@FAMILY.by_hand(softplus, np.zeros((32, 64), np.float16))
@pl.program
class Softplus:
    @pl.function(type=pl.FunctionType.Orchestration)
    def softplus(
        self, x: pl.Tensor[[32, 64], pl.FP16], out: pl.Out[pl.Tensor[[32, 64], pl.FP16]], beta: pl.Scalar[pl.INDEX]
    ) -> pl.Tensor[[32, 64], pl.FP16]:
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.cast(pl.load(x, [0, 0], [32, 64]), pl.FP32)
            smooth = pl.log(pl.exp(tile * 2.0) + 1.0) * 0.5
            out = pl.store(pl.cast(smooth, pl.FP16, mode="rint"), [0, 0], out)
        return out
