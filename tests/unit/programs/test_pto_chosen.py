"""Tensors that the running program chooses as PTO text: read back, they are the same ones."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportPossiblyUnboundVariable=false, reportUnknownParameterType=false, reportUnnecessaryComparison=false
# pyright: reportCallIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from property.exported import read_back, run_exported

import tilewright.language as pl
from tilewright import ir
from tilewright.frontend.programs import as_program
from tilewright.programs.pto_text.export import as_pto


def matrix(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


@pl.jit
def in_turns(x: pl.Tensor, out: pl.Out[pl.Tensor], ns: pl.Tensor):
    """Two buffers that change places after each round, around a loop of kernels."""
    a, b = pl.create_tensor([20, 20], dtype=pl.FP32), pl.create_tensor([20, 20], dtype=pl.FP32)
    for r in pl.parallel(0, 20, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [4, 20])
            a = pl.store(t, [r, 0], a)
            b = pl.store(t, [r, 0], b)
    for _ in pl.range(pl.read(ns, [0])):
        for r in pl.parallel(1, 19, 6):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(a, [r - 1, 1], [6, 18]) + pl.load(a, [r + 1, 1], [6, 18]) + pl.load(a, [r, 0], [6, 18])
                b = pl.store(t * 0.25, [r, 1], b)
        a, b = b, a
    for r in pl.parallel(0, 20, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(a, [r, 0], [4, 20]), [r, 0], out)


@pl.jit
def in_a_kernel(x: pl.Tensor, out: pl.Out[pl.Tensor], ns: pl.Tensor):
    """A buffer and a parameter that change places inside of one kernel."""
    a, b = pl.create_tensor([20, 20], dtype=pl.FP32), pl.create_tensor([20, 20], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.store(pl.load(x, [0, 0], [20, 20]), [0, 0], a)
        b = pl.store(pl.load(x, [0, 0], [20, 20]), [0, 0], b)
        k = 0
        while k < pl.read(ns, [0]):
            b = pl.store(pl.load(a, [0, 0], [20, 20]) * 2.0, [0, 0], b)
            a, b = b, a
            k = k + 1
        pl.store(pl.load(a, [0, 0], [20, 20]) + pl.read(b, [0, 1]), [0, 0], out)


@pl.jit
def one_of_three(x: pl.Tensor, y: pl.Tensor, z: pl.Tensor, out: pl.Out[pl.Tensor], ns: pl.Tensor):
    n = pl.read(ns, [0])
    if n == 2:
        chosen = x
    elif n == 3:
        chosen = y
    else:
        chosen = z
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(chosen, [0, 0], [20, 20]) + pl.read(chosen, [chosen.shape[0] - 1, 1]), [0, 0], out)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
@pytest.mark.parametrize("n", [0, 2, 3, 5])
@pytest.mark.parametrize("kernel", [in_turns, in_a_kernel, one_of_three], ids=lambda kernel: kernel.__name__)
def test_every_bit_is_the_same_when_it_is_read_back(kernel: Any, n: int, platform: str) -> None:
    tensors = [matrix(20, 20, seed=seed) for seed in range(4 if kernel is one_of_three else 2)]
    wanted, found = read_back(kernel, lambda: [*(each.copy() for each in tensors), np.array([n], np.int32)], platform)
    np.testing.assert_array_equal(found[-2], wanted[-2])


@pl.program
class Both:
    """What a call gives of several tensors, and a round that ends there."""

    @pl.function(type=pl.FunctionType.InCore)
    def both(self, a: pl.InOut[pl.Tensor[[40], pl.FP32]], b: pl.InOut[pl.Tensor[[4, 16], pl.INT32]]):
        pl.store(pl.load(a, [0], [8]) + 1.0, [0], a)
        pl.store(pl.load(b, [0, 0], [4, 16]) + 1, [0, 0], b)
        return a, b

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.InOut[pl.Tensor[[40], pl.FP32]],
        b: pl.InOut[pl.Tensor[[4, 16], pl.INT32]],
        n: pl.Scalar[pl.INDEX],
    ):
        for i in pl.range(n):
            if i == 1:
                a, b = self.both(a, b)
                continue
            with pl.at(level=pl.Level.CORE_GROUP):
                a = pl.store(pl.load(a, [0], [8]) * 2.0, [0], a)
        return a, b


def test_of_several_tensors_that_a_call_is_given_each_result_is_one_like_it() -> None:
    wanted: list[Any]
    found: list[Any]
    wanted, found = ([np.ones(40, np.float32), np.ones((4, 16), np.int32), 3] for _ in range(2))
    program = as_program(Both)
    ir.compile(program, platform="interpret")(*wanted)
    run_exported(as_pto(program), "main", found, {})
    for got, want in zip(found[:2], wanted[:2], strict=True):
        np.testing.assert_array_equal(got, want)
    assert wanted[1][0, 0] == 2
