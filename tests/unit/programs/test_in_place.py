"""Gathers that copy nothing: when rows are read where the ranks have them, and when they are copied after all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.core.region import whole
from tilewright.interpret.hosts import HostMachine
from tilewright.ir.distributed_compiled_program import DistributedCompiledProgram
from tilewright.programs.distributed.in_place import in_place
from tilewright.programs.distributed.team import TeamRun
from tilewright.runtime import RunConfig

RANKS, SIZE, ROWS = 3, 1024, 4
WIDTH = SIZE // ROWS
ROW = pld.DistributedTensor[[1, SIZE], pl.FP32]
ALL = pld.DistributedTensor[[RANKS * ROWS, WIDTH], pl.FP32]
X = pl.Tensor[[1, SIZE], pl.FP32]
Y = pl.Tensor[[RANKS * ROWS, ROWS], pl.FP32]
XS = pl.Tensor[[RANKS, 1, SIZE], pl.FP32]
YS = pl.Tensor[[RANKS, RANKS * ROWS, ROWS], pl.FP32]


@pl.jit
def publish(x: X, row: pl.InOut[ROW]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], row)


@pl.jit
def multiply(x: X, gathered: ALL, y: pl.Out[Y]):
    with pl.at(level=pl.Level.CORE_GROUP):
        right = pl.reshape(pl.load(x, [0, 0], [1, SIZE]), [WIDTH, ROWS])
        y = pl.store(pl.matmul(pl.load(gathered, [0, 0], [RANKS * ROWS, WIDTH]), right), [0, 0], y)
    return y


@pl.jit.host
def read_in_place(x: XS, y: pl.Out[YS]):
    own = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    rows = pld.alloc_window_buffer([RANKS, SIZE], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    row = pld.window(own, [1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        publish(x[r], row, device=r)
    pld.tensor.allgather(
        row, pld.window(rows, [RANKS, SIZE], dtype=pl.FP32), pld.window(cells, [RANKS, 1], dtype=pl.INT32)
    )
    for r in pl.range(pld.world_size()):
        multiply(x[r], pld.window(rows, [RANKS * ROWS, WIDTH], dtype=pl.FP32), y[r], device=r)
    return y


@pl.jit.host
def written_again(x: XS, y: pl.Out[YS]):
    own = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    rows = pld.alloc_window_buffer([RANKS, SIZE], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    row = pld.window(own, [1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        publish(x[r], row, device=r)
    pld.tensor.allgather(
        row, pld.window(rows, [RANKS, SIZE], dtype=pl.FP32), pld.window(cells, [RANKS, 1], dtype=pl.INT32)
    )
    for r in pl.range(pld.world_size()):
        publish(x[(r + 1) % RANKS], row, device=r)
    for r in pl.range(pld.world_size()):
        multiply(x[r], pld.window(rows, [RANKS * ROWS, WIDTH], dtype=pl.FP32), y[r], device=r)
    return y


@pl.jit.host
def gathered_again(x: XS, y: pl.Out[YS]):
    own = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    rows = pld.alloc_window_buffer([RANKS, SIZE], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    row = pld.window(own, [1, SIZE], dtype=pl.FP32)
    for turn in pl.range(5):
        for r in pl.range(pld.world_size()):
            publish(x[(r + turn) % RANKS], row, device=r)
        pld.tensor.allgather(
            row, pld.window(rows, [RANKS, SIZE], dtype=pl.FP32), pld.window(cells, [RANKS, 1], dtype=pl.INT32)
        )
        for r in pl.range(pld.world_size()):
            multiply(x[r], pld.window(rows, [RANKS * ROWS, WIDTH], dtype=pl.FP32), y[r], device=r)
    return y


@pl.jit
def gather_and_multiply(
    x: X,
    y: pl.Out[Y],
    rows: pl.InOut[pld.DistributedTensor[[RANKS, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        for _ in pl.range(2):
            pld.tensor.allgather(x, rows, signal)
        gathered = pl.reshape(rows, [RANKS * ROWS, WIDTH])
        right = pl.reshape(pl.load(x, [0, 0], [1, SIZE]), [WIDTH, ROWS])
        y = pl.store(pl.matmul(pl.load(gathered, [0, 0], [RANKS * ROWS, WIDTH]), right), [0, 0], y)
    return y


@pl.jit.host
def one_memory(x: XS, y: pl.Out[YS]):
    held = pld.alloc_window_buffer([RANKS, SIZE], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        rows = pld.window(held, [RANKS, SIZE], dtype=pl.FP32)
        gather_and_multiply(x[r], y[r], rows, pld.window(cells, [RANKS, 1], dtype=pl.INT32), device=r)
    return y


@pl.jit
def gather_and_change(
    x: X,
    y: pl.Out[Y],
    rows: pl.InOut[pld.DistributedTensor[[RANKS, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.allgather(x, rows, signal)
        pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], rows)
        gathered = pl.reshape(rows, [RANKS * ROWS, WIDTH])
        right = pl.reshape(pl.load(x, [0, 0], [1, SIZE]), [WIDTH, ROWS])
        y = pl.store(pl.matmul(pl.load(gathered, [0, 0], [RANKS * ROWS, WIDTH]), right), [0, 0], y)
    return y


@pl.jit.host
def changed(x: XS, y: pl.Out[YS]):
    held = pld.alloc_window_buffer([RANKS, SIZE], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        rows = pld.window(held, [RANKS, SIZE], dtype=pl.FP32)
        gather_and_change(x[r], y[r], rows, pld.window(cells, [RANKS, 1], dtype=pl.INT32), device=r)
    return y


def copies(program: DistributedCompiledProgram) -> list[int]:
    run = next(iter(program.loaded.plans.values())).run
    assert isinstance(run, TeamRun)
    return [parts.copies for _, parts in sorted(run.steps.parts.items(), key=lambda item: item[0].size)]


@pytest.mark.parametrize(
    ("host", "lies"),
    [
        (read_in_place, [3, 3, 0]),
        (gathered_again, [3, 3, 0]),
        (written_again, [3, 3, 3]),
        (one_memory, [3, 1]),
        (changed, [3, 3]),
    ],
)
def test_a_gather_copies_rows_only_where_somebody_could_tell(host: Any, lies: Sequence[int]) -> None:
    x = np.random.default_rng(0).standard_normal((RANKS, 1, SIZE)).astype(np.float32)
    results = {platform: np.zeros((RANKS, RANKS * ROWS, ROWS), np.float32) for platform in ("interpret", "cpu")}
    for platform, y in results.items():
        program = host.compile(x, y, config=RunConfig(platform=platform, device_ids=range(RANKS)))
        for _ in range(2):
            y[...] = 0
            program(x, y)
        if platform == "cpu":
            assert copies(program) == lies
            assert ("copy nothing" in program.stages["plan"]) == (0 in lies)
            assert ("one for all of ranks 0, 1, 2" in program.stages["plan"]) == (1 in lies)
    np.testing.assert_allclose(results["cpu"], results["interpret"], rtol=1e-4, atol=1e-3)


def test_rows_are_written_again_once_all_others_have_read_them() -> None:
    x, y = np.ones((RANKS, 1, SIZE), np.float32), np.zeros((RANKS, RANKS * ROWS, ROWS), np.float32)
    program = gathered_again.specialize(x, y).program
    machine = HostMachine(program, RANKS)
    machine.planned("gathered_again", [whole(x), whole(y)])
    in_place(machine.plan, program, machine.footprints).order(machine.plan)
    turns = machine.plan.turns[1]
    assert [dict(turn.needs) for turn in turns[:2]] == [{}, {0: 2}]  # it publishes, and the first of all gathers
    assert dict(turns[3].needs) == {0: 3, 2: 3}  # it publishes again once the others have multiplied
