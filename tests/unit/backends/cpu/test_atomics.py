"""Atomic sums: what many turns add to one place all arrives, whoever runs them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from unit.backends.cpu.running import Native, native

from tilewright.dtypes import DataType
from tilewright.ops.memory import ATOMIC

TURNS = 200
"""So few that sums of ones are exact in every type that adds, even in bfloat16."""

LOOP = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{turns}, {width}], pl.{dtype}], out: pl.InOut[pl.Tensor[[3, {width}], pl.{dtype}]]):
        for i in pl.parallel({turns}):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(x, [i, 0], [1, {width}]), [1, 0], out, atomic=pl.AtomicType.Add)
        return out
"""


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "4")


def bits(dtype: DataType, *shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 2, shape).astype(dtype.numpy)


def text_of(adding: Native) -> str:
    return adding.native.code.texts["llvm"]()


@pytest.mark.parametrize("width", [1, 5, 16, 70, 128])
@pytest.mark.parametrize("dtype", sorted(ATOMIC, key=str), ids=str)
def test_parallel_turns_add_exactly(dtype: DataType, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    adding = native(LOOP.format(turns=TURNS, width=width, dtype=dtype.symbol))
    assert "@task" in text_of(adding)
    for threads in (1, 2, 4, 4, 4):
        monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", str(threads))
        adding.check(bits(dtype, TURNS, width), np.full((3, width), 3, dtype.numpy))


def test_integers_wrap_as_they_do_alone() -> None:
    adding = native(LOOP.format(turns=TURNS, width=40, dtype="INT8"))
    adding.check(np.random.default_rng(1).integers(-128, 128, (TURNS, 40)).astype(np.int8), np.ones((3, 40), np.int8))


def test_blocks_of_a_grid_add_through_a_turned_view() -> None:
    adding = native(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def block(self, x: pl.Tensor[[100, 24], pl.FP32], out: pl.InOut[pl.Tensor[[24, 2], pl.FP32]]):
        i = pl.tile.get_block_idx()
        out = pl.store(pl.load(pl.transpose(x, 0, 1), [0, i], [24, 1]), [0, 1], out, atomic=pl.AtomicType.Add)
        view = pl.transpose(out, 0, 1)
        view = pl.store(pl.load(x, [i, 0], [1, 24]), [0, 0], view, atomic=pl.AtomicType.Add)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[100, 24], pl.FP32], out: pl.InOut[pl.Tensor[[24, 2], pl.FP32]]):
        result, task = pl.spmd_submit(self.block, x, out, core_num=100)
        return result
"""
    )
    x = np.random.default_rng(2).integers(-9, 9, (100, 24)).astype(np.float32)
    adding.check(x, np.zeros((24, 2), np.float32))


def test_a_function_called_from_turns_adds_atomically_and_elsewhere_in_whole_vectors() -> None:
    adding = native(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def add(self, x: pl.Tensor[[64, 16], pl.FP32], i: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]):
        out = pl.store(pl.load(x, [i, 0], [1, 16]), [0, 0], out, atomic=pl.AtomicType.Add)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 16], pl.FP32], out: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]):
        for i in pl.range(64):
            out = self.add(x, i, out)
        for i in pl.parallel(64):
            out = self.add(x, i, out)
        return out
"""
    )
    x = np.random.default_rng(3).integers(-9, 9, (64, 16)).astype(np.float32)
    adding.check(x, np.zeros((1, 16), np.float32))
    written = [part for part in text_of(adding).split("define ") if "_add(" in part.split("{")[0]]
    assert sorted(bool(re.search(r"cmpxchg ptr %\w+, i32", part)) for part in written) == [False, True]


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_partly_valid_tiles_add_what_is_valid(rows: int) -> None:
    adding = native(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[320, 21], pl.INT32], rows: pl.Scalar[pl.INDEX],
             out: pl.InOut[pl.Tensor[[9, 30], pl.INT32]]):
        for i in pl.parallel(40):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [i * 8, 0], [8, 21], valid_shape=[rows, 3 * rows])
                out = pl.store(t, [1, 5], out, atomic=pl.AtomicType.Add)
        return out
"""
    )
    x = np.random.default_rng(4).integers(-(1 << 31), 1 << 31, (320, 21)).astype(np.int32)
    adding.check(x, rows, np.ones((9, 30), np.int32))
