"""One process of several: what an output holds beforehand differs between processes, and does not matter."""

from __future__ import annotations

import os

import numpy as np

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
NR = pl.dynamic("NR")
ROWS = pl.Tensor[[NR, 8], pl.INT32]
CONFIG = RunConfig(device_ids=range(RANKS))


@pl.jit
def copies(x: pl.Tensor[[8], pl.INT32], y: pl.Out[pl.Tensor[[8], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0], [8]), [0], y)


@pl.jit
def copies_a_row(x: ROWS, y: pl.Out[ROWS], row: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [row, 0], [1, 8]), [row, 0], y)


@pl.jit.host
def own_rows(x: ROWS, y: pl.Out[ROWS]):
    for r in pl.range(pld.world_size()):
        copies(x[r], y[r], device=r)
    return y


@pl.jit.host
def rows_of_all(x: ROWS, y: pl.Out[ROWS]):
    for r in pl.range(pld.world_size()):
        copies_a_row(x, y, r, device=r)
    return y


for host in (own_rows, rows_of_all):
    for call in range(4):
        x = np.full((RANKS, 8), call + 5, np.int32) + np.arange(8, dtype=np.int32)
        y = np.full((RANKS, 8), RANK, np.int32)
        if call % 2:
            y[RANK] = x[RANK]  # as memory may that was used before
        host(x, y, config=CONFIG)
        print(f"{host.name} {call}: {'right' if (x == y).all() else y.tolist()}", flush=True)
