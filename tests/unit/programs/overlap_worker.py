"""One of several processes: rows that are multiplied as they come, in so many pieces, and ranks that fail meanwhile."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ExecutionError
from tilewright.programs.distributed import overlapped
from tilewright.programs.distributed.group import Group
from tilewright.programs.distributed.program import DistributedCompiledProgram
from tilewright.runtime import RunConfig

dist: Any = torch.distributed
dist.init_process_group("gloo")
RANKS, RANK = dist.get_world_size(), dist.get_rank()
overlapped.WHOLE = int(sys.argv[-1])
Group.has_idle_cores = True  # pyright: ignore[reportAttributeAccessIssue]
ROWS, K, COLUMNS, BLOCK = 256, 272, 16, 32
"""Of each rank: more than a quarter of a megabyte, in steps of so many rows."""


@pl.jit
def publish(a: pl.Tensor[[ROWS, K], pl.FP32], own: pl.InOut[pld.DistributedTensor[[ROWS, K], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(a, [0, 0], [ROWS, K])
        assert pl.read(a, [0, 0]) >= 0.0, "a must not be negative"
        pl.store(t, [0, 0], own)


@pl.jit
def multiply(
    rows: pld.DistributedTensor[[RANKS * ROWS, K], pl.FP32],
    b: pl.Tensor[[K, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[RANKS * ROWS, COLUMNS], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        right = pl.load(b, [0, 0], [K, COLUMNS])
        for step in pl.range(RANKS * ROWS // BLOCK):
            y = pl.store(pl.matmul(pl.load(rows, [step * BLOCK, 0], [BLOCK, K]), right), [step * BLOCK, 0], y)
    return y


@pl.jit.host
def gathered(
    a: pl.Tensor[[2, RANKS, ROWS, K], pl.FP32],
    b: pl.Tensor[[RANKS, K, COLUMNS], pl.FP32],
    y: pl.Out[pl.Tensor[[2, RANKS, RANKS * ROWS, COLUMNS], pl.FP32]],
):
    own = pld.alloc_window_buffer([ROWS, K], dtype=pl.FP32)
    rows = pld.alloc_window_buffer([RANKS * ROWS, K], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for turn in pl.range(2):
        for r in pl.range(pld.world_size()):
            publish(a[turn, r], pld.window(own, [ROWS, K], dtype=pl.FP32), device=r)
        target = pld.window(rows, [RANKS, ROWS * K], dtype=pl.FP32)
        row = pld.window(own, [1, ROWS * K], dtype=pl.FP32)
        pld.tensor.allgather(row, target, pld.window(cells, [RANKS, 1], dtype=pl.INT32))
        for r in pl.range(pld.world_size()):
            multiply(pld.window(rows, [RANKS * ROWS, K], dtype=pl.FP32), b[r], y[turn, r], device=r)
    return y


def attempt(program: DistributedCompiledProgram, seed: int, wrong: int | None = None) -> None:
    random = np.random.default_rng(seed)
    a = random.integers(0, 8, (2, RANKS, ROWS, K)).astype(np.float32)
    b = random.integers(0, 8, (RANKS, K, COLUMNS)).astype(np.float32)
    y = np.zeros((2, RANKS, RANKS * ROWS, COLUMNS), np.float32)
    if wrong is not None:
        a[1, wrong, 0, 0] = -1
    try:
        program(a, b, y)
        wanted = np.stack([[a[turn].reshape(-1, K) @ b[r] for r in range(RANKS)] for turn in range(2)])
        print("right" if np.array_equal(y, wanted) else "wrong", flush=True)
    except ExecutionError as error:
        print(f"{'own' if RANK == wrong else 'told'}: {error}".splitlines()[0], flush=True)


program = gathered.compile(config=RunConfig(device_ids=range(RANKS)))
assert isinstance(program, DistributedCompiledProgram)
for seed in range(3):
    attempt(program, seed)
for wrong in range(RANKS):
    attempt(program, wrong, wrong)
    attempt(program, 3 + wrong)
print(*sorted(program.loaded.chips.distant), flush=True)
print("links:", sum(each.name.startswith("tilewright-link") for each in threading.enumerate()), flush=True)
dist.barrier()
dist.destroy_process_group()
