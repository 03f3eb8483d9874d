"""Tensors that a loop or a branch makes first, as PTO text: read back, they are the same ones."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportPossiblyUnboundVariable=false, reportUnknownParameterType=false, reportUnnecessaryComparison=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from property.exported import read_back, run_exported

import tilewright.language as pl
from tilewright import ir, pto
from tilewright.core.program import Program
from tilewright.programs.pto_text.export import as_pto

Square = pl.Tensor[[20, 20], pl.FP32]


@pl.jit
def in_each_turn(x: Square, out: pl.Out[Square], ns: pl.Tensor):
    """The last turn's tensor is used behind the loop, one of bools and numbers beside it."""
    for i in pl.range(3):
        b = pl.create_tensor([20, 20], dtype=pl.FP32, init_value=2.0)
        seen = b
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [10, 20]) * pl.cast(i, pl.FP32), [0, 0], b)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(b, [0, 0], [20, 20]) + pl.load(seen, [0, 0], [20, 20]), [0, 0], out)


@pl.jit
def while_it_holds(x: Square, out: pl.Out[Square], ns: pl.Tensor):
    k = 0
    while k < pl.read(ns, [0]) + 1:
        b = pl.create_tensor([20, 20], dtype=pl.FP32, init_value=3.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [10, 20]) * 2.0, [k, 0], b)
        k = k + 1
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(b, [0, 0], [20, 20]) + 1.0, [0, 0], out)


@pl.jit
def in_a_branch(x: pl.InOut[Square], out: pl.Out[Square], ns: pl.Tensor):
    if pl.read(ns, [0]) > 1:
        b = pl.create_tensor([20, 20], dtype=pl.FP32, init_value=4.0)
    else:
        b = x
    with pl.at(level=pl.Level.CORE_GROUP):
        b = pl.store(pl.load(x, [0, 0], [10, 20]) + 1.0, [5, 0], b)
        pl.store(pl.load(b, [0, 0], [20, 20]) + pl.load(x, [0, 0], [20, 20]), [0, 0], out)


@pl.jit
def in_turns_by_blocks(x: Square, out: pl.Out[Square], ns: pl.Tensor):
    for r in pl.parallel(0, 20, 5):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(2):
                b = pl.create_tensor([5, 20], dtype=pl.FP32, init_value=1.0)
                b = pl.store(pl.load(x, [r, 0], [3, 20]) * pl.cast(i, pl.FP32), [1, 0], b)
            pl.store(pl.load(b, [0, 0], [5, 20]), [r, 0], out)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("kernel", [in_each_turn, while_it_holds, in_a_branch, in_turns_by_blocks])
def test_tensors_that_are_made_inside(kernel: Any, count: int, platform: str) -> None:
    x = np.random.default_rng(0).integers(-8, 9, (20, 20)).astype(np.float32)
    given = [x, np.zeros((20, 20), np.float32), np.array([count], np.int64)]
    wanted, found = read_back(kernel, lambda: [each.copy() for each in given], platform)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pl.jit
def the_turn_before(x: Square, out: pl.Out[Square]):
    old = x
    for _ in pl.range(3):
        new = pl.create_tensor([20, 20], dtype=pl.FP32, init_value=0.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            new = pl.store(pl.load(old, [0, 0], [19, 20]), [1, 0], new)
        old = new
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(old, [0, 0], [20, 20]), [0, 0], out)


def test_two_turns_tensors_at_once_are_refused() -> None:
    x = np.zeros((20, 20), np.float32)
    with pytest.raises(pto.NoPtoError, match="from branches and loops"):
        the_turn_before.compile(x, x.copy()).as_pto()


@pl.jit
def seen_otherwise(x: Square, out: pl.Out[Square]):
    for i in pl.range(3):
        flat = pl.tensor.reshape(x, [1, 20, 20])
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.reshape(pl.load(flat, [0, i, 0], [1, 1, 20]), [1, 20]), [i, 0], out)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.reshape(pl.load(flat, [0, 5, 0], [1, 1, 20]), [1, 20]), [5, 0], out)


def test_a_view_that_a_loop_makes_first_is_refused() -> None:
    x = np.zeros((20, 20), np.float32)
    with pytest.raises(
        pto.NoPtoError, match="tensors of fixed extents that each turn makes anew|hands on whole tensors"
    ):
        seen_otherwise.compile(x, x.copy()).as_pto()


VIEWS = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def step(self, w: pl.InOut[pl.Tensor[[20, 20], pl.FP32]], i: pl.Scalar[pl.INDEX]) -> pl.Tensor[[20, 20], pl.FP32]:
        return pl.store(pl.load(w, [i, 0], [1, 20]) * 2.0, [i + 1, 0], w)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[20, 20], pl.FP32]], n: pl.Scalar[pl.INDEX]):
        seen = pl.transpose(x, 0, 1)
        for i, (carried,) in pl.range(n, init_values=(seen,)):
            if i == 1:
                pl.yield_(carried)
                continue
            else:
                made = self.step(carried, i)
            last = pl.yield_(made)
        self.step(last, n)
        return x
"""


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_views_that_a_loop_carries_stay_views(platform: str) -> None:
    program = pl.parse(VIEWS)
    assert isinstance(program, Program)
    wanted = np.random.default_rng(0).integers(-8, 9, (20, 20)).astype(np.float32)
    found = wanted.copy()
    ir.compile(program, platform="interpret")(wanted, 3)
    run_exported(as_pto(program), "main", [found, 3], {}, platform)
    np.testing.assert_array_equal(found, wanted)
