"""Filled windows: large ones that every rank first writes as a whole are not zeroed before, and all others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

ROWS, COLUMNS = 64, 512
Part = pl.Tensor[[ROWS, COLUMNS], pl.FP32]
Parts = pl.Tensor[[2, ROWS, COLUMNS], pl.FP32]
Window = pl.InOut[pld.DistributedTensor[[ROWS, COLUMNS], pl.FP32]]


@pl.jit
def fills(x: Part, w: Window):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(ROWS):
            pl.store(pl.load(x, [i, 0], [1, COLUMNS]), [i, 0], w)


@pl.jit
def leaves_a_row(x: Part, w: Window):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(ROWS - 1):
            pl.store(pl.load(x, [i, 0], [1, COLUMNS]), [i, 0], w)


@pl.jit
def adds_to_what_was_there(x: Part, w: Window):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(ROWS):
            pl.store(pl.load(x, [i, 0], [1, COLUMNS]) + pl.load(w, [i, 0], [1, COLUMNS]), [i, 0], w)


@pl.jit
def fills_the_first_ranks(x: Part, w: Window):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(ROWS):
            pld.tile.remote_store(pl.load(x, [i, 0], [1, COLUMNS]), w, 0, [i, 0])


@pl.jit
def takes(w: pld.DistributedTensor[[ROWS, COLUMNS], pl.FP32], y: pl.Out[Part]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(ROWS):
            y = pl.store(pl.load(w, [i, 0], [1, COLUMNS]), [i, 0], y)
    return y


def host(chip: Any, begun: int) -> Any:
    """Return a host function that lets so many ranks begin with a function, and all of them end with a look."""

    @pl.jit.host
    def made(x: Parts, y: pl.Out[Parts]):
        rows = pld.alloc_window_buffer([ROWS, COLUMNS], dtype=pl.FP32)
        cells = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        w = pld.window(rows, [ROWS, COLUMNS], dtype=pl.FP32)
        for r in pl.range(begun):
            chip(x[r], w, device=r)
        pld.tensor.barrier(pld.window(cells, [2, 1], dtype=pl.INT32))
        for r in pl.range(2):
            takes(w, y[r], device=r)
        return y

    return made


@pytest.mark.parametrize(
    ("chip", "begun", "cleared"),
    [(fills, 2, 1), (fills, 1, 2), (leaves_a_row, 2, 2), (adds_to_what_was_there, 2, 2), (fills_the_first_ranks, 1, 2)],
    ids=["all", "one", "row", "adds", "peer"],
)
def test_a_window_is_zeroed_where_that_could_be_seen(chip: Any, begun: int, cleared: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, ROWS, COLUMNS)).astype(np.float32)
    program = host(chip, begun)
    compiled = program.compile(config=RunConfig(device_ids=[0, 1]))
    for k in range(3):
        y, wanted = np.zeros_like(x), np.zeros_like(x)
        compiled(x + k, y)
        program(x + k, wanted, config=RunConfig(platform="interpret", device_ids=[0, 1]))
        assert np.array_equal(y, wanted)
    (plan,) = compiled.loaded.plans.values()
    assert len(plan.run.steps.cleared) == cleared  # the signals among them
