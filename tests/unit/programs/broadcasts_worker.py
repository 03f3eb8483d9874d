"""What each of several processes runs: broadcasts from one root after the other, of which none waits for another."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.runtime import RunConfig

RANKS, CALLS, SIZE = int(os.environ["WORLD_SIZE"]), 20, 64
NR = pl.dynamic("NR")
X = pl.Tensor[[1, SIZE], pl.FP32]
XS = pl.Tensor[[NR, 1, SIZE], pl.FP32]
WINDOW = pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]]


@pl.jit
def publish(x: X, own: WINDOW):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], own)


@pl.jit
def give(x: X, inbox: WINDOW):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.put(inbox, (pld.rank(inbox) + 1) % pld.nranks(inbox), x)


@pl.jit
def take(held: pld.DistributedTensor[[1, SIZE], pl.FP32], y: pl.Out[X]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(held, [0, 0], [1, SIZE]), [0, 0], y)
    return y


def broadcasting(root: int) -> pl.JITFunction:
    """Return a host function in which ranks reach each other by a broadcast alone."""

    @pl.jit.host
    def broadcast(x: XS, y: pl.Out[XS]):
        rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
        own = pld.window(rows, [1, SIZE], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            publish(x[r], own, device=r)
        own = pld.tensor.broadcast(own, pld.window(cells, [RANKS, 1], dtype=pl.INT32), root=root)
        for r in pl.range(pld.world_size()):
            take(own, y[r], device=r)
        return y

    return broadcast


@pl.jit.host
def given_before(x: XS, y: pl.Out[XS]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    inboxes = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    own, inbox = pld.window(rows, [1, SIZE], dtype=pl.FP32), pld.window(inboxes, [1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        give(x[r], inbox, device=r)
    own = pld.tensor.broadcast(own, pld.window(cells, [RANKS, 1], dtype=pl.INT32), root=0)
    for r in pl.range(pld.world_size()):
        take(inbox, y[r], device=r)
    return y


def main() -> None:
    config = RunConfig(device_ids=range(RANKS))
    functions = {root: broadcasting(root) for root in (0, RANKS - 1)}
    for call in range(CALLS):
        x: Any = np.arange(RANKS * SIZE, dtype=np.float32).reshape(RANKS, 1, SIZE) + call  # pyright: ignore[reportUnknownMemberType]
        for root in functions:
            y = np.zeros_like(x)
            functions[root](x, y, config=config)
            assert (y == x[root]).all(), (call, root)
        y = np.zeros_like(x)
        given_before(x, y, config=config)
        assert (y == np.roll(x, 1, 0)).all(), call
    print("broadcast", flush=True)


if __name__ == "__main__":
    main()
