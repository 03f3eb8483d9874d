"""Reductions that ranks share in: who tells how far rows are made, and what happens where that goes wrong."""
# annotations are evaluated: they name what encloses the functions

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ExecutionError
from tilewright.ir.distributed_compiled_program import DistributedCompiledProgram
from tilewright.runtime import RunConfig

RANKS, ROWS, COLUMNS, STEP = 3, 384, 96, 32
SHARE = ROWS // RANKS
W = pld.DistributedTensor[[ROWS, COLUMNS], pl.FP32]
X = pl.Tensor[[ROWS, COLUMNS], pl.FP32]
Y = pl.Tensor[[SHARE, COLUMNS], pl.FP32]
XS = pl.Tensor[[RANKS, ROWS, COLUMNS], pl.FP32]
YS = pl.Tensor[[RANKS, SHARE, COLUMNS], pl.FP32]


@pl.jit
def make(x: X, w: pl.InOut[W]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for step in pl.range(ROWS // STEP):
            pl.system.device_assert(pl.read(x, [step * STEP, 0]) >= 0.0, message="x must not be negative")
            pl.store(pl.mul(pl.load(x, [step * STEP, 0], [STEP, COLUMNS]), 2.0), [step * STEP, 0], w)


@pl.jit
def take(w: W, rank: pl.Scalar[pl.INT32], y: pl.Out[Y]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for step in pl.range(SHARE // STEP):
            y = pl.store(pl.load(w, [rank * SHARE + step * STEP, 0], [STEP, COLUMNS]), [step * STEP, 0], y)
    return y


@pl.jit.host
def summed(x: XS, y: pl.Out[YS]):
    rows = pld.alloc_window_buffer([ROWS, COLUMNS], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    w = pld.window(rows, [ROWS, COLUMNS], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        make(x[r], w, device=r)
    pld.tensor.reduce_scatter(
        pld.window(rows, [RANKS, SHARE * COLUMNS], dtype=pl.FP32), pld.window(cells, [RANKS, 1], dtype=pl.INT32)
    )
    for r in pl.range(pld.world_size()):
        take(w, r, y[r], device=r)
    return y


def given() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what ranks have, room for what they get, and that."""
    x = np.random.default_rng(0).integers(0, 9, (RANKS, ROWS, COLUMNS)).astype(np.float32)
    return x, np.zeros((RANKS, SHARE, COLUMNS), np.float32), 2 * x.sum(0).reshape(RANKS, SHARE, COLUMNS)


def compiled() -> DistributedCompiledProgram:
    program = summed.compile(config=RunConfig(device_ids=range(RANKS)))
    assert isinstance(program, DistributedCompiledProgram)
    return program


def test_the_plan_shows_that_rows_are_summed_as_they_are_made() -> None:
    plan = compiled().stages["plan"]
    acts = [line.split(": ")[-1].split(",")[0] for line in plan.splitlines() if "line " in line]
    assert acts == ["make_telling_w", "sum_rows_fp32", "barrier", "take"]


@pytest.mark.parametrize("rank", range(RANKS))
def test_a_rank_that_fails_while_others_sum_its_rows_ends_them_and_the_next_call_works(rank: int) -> None:
    program = compiled()
    x, y, _ = given()
    x[rank, ROWS - STEP, 0] = -1
    with pytest.raises(ExecutionError, match="x must not be negative") as caught:
        program(x, y)
    assert f"on rank {rank}" in caught.value.notes
    x[rank, ROWS - STEP, 0] = 1
    program(x, y)
    wanted = 2 * x.sum(0).reshape(RANKS, SHARE, COLUMNS)
    assert np.array_equal(y, wanted)


def test_windows_that_are_kept_find_their_signals_as_they_were() -> None:
    torch: Any = pytest.importorskip("torch")
    x, y, wanted = (torch.from_numpy(each).share_memory_() for each in given())
    with compiled().prepare(persistent=True, reset_persistent_windows=False) as worker:
        for _ in range(3):
            y.zero_()
            worker(x, y)
            assert torch.equal(y, wanted)


def test_a_program_of_a_folder_sums_on_all_ranks_too() -> None:
    x, y, wanted = given()
    program = compiled()
    program(x, y)
    assert len(program.anatomy(program.source).texts) > 0  # of its own functions, not of those that sum
    y[:] = 0
    found = DistributedCompiledProgram.from_dir(program.output_dir)
    found(x, y)
    assert np.array_equal(y, wanted)
    assert {*found.loaded.chips.here} == {"make_telling_w", "sum_rows_fp32", "take"}
