"""One process of several, or all ranks of one: dispatches of other ranks that touch one tensor of the caller's."""

from __future__ import annotations

import os

import numpy as np

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ExecutionError
from tilewright.runtime import RunConfig

RANKS = 3
ROWS = pl.Tensor[[RANKS, 64], pl.FP32]
ROW = pl.Tensor[[64], pl.FP32]


@pl.jit
def copies(x: ROW, y: pl.Out[ROW]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0], [64]), [0], y)


@pl.jit
def copies_late(x: ROW, y: pl.InOut[ROW]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for _ in pl.range(100_000):
            pl.store(pl.load(y, [0], [64]) + 1.0, [0], y)
        pl.store(pl.load(x, [0], [64]), [0], y)


@pl.jit.host
def overwritten(x: ROWS, t: pl.InOut[ROWS], y: pl.InOut[ROWS]):
    """Overwrite what others read before."""
    for r in pl.range(pld.world_size()):
        copies_late(t[(r + 1) % RANKS], y[r], device=r)
    for r in pl.range(pld.world_size()):
        copies(x[r], t[r], device=r)
    return y


@pl.jit.host
def written_twice(x: ROWS, t: pl.InOut[ROWS], y: pl.InOut[ROWS]):
    """Write what another rank has written before."""
    copies_late(x[0], y[0], device=0)
    copies(x[1], y[0], device=1)
    copies(t[0], y[1], device=1)
    copies(t[0], y[2], device=2)
    return y


@pl.jit
def writes_by_turns(
    x: ROW, t: pl.InOut[ROWS], cells: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]], by: pl.Scalar[pl.INT32]
):
    """Write rows that another rank has written before a barrier, from the first on."""
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(cells)
        for step in pl.range(RANKS):
            row = pl.load(x, [0], [64]) + pl.cast(100 * step + by, pl.FP32)
            pl.store(pl.reshape(row, [1, 64]), [(me + step) % RANKS, 0], t)
            pld.tensor.barrier(cells)


@pl.jit.host
def written_by_turns(x: ROWS, t: pl.InOut[ROWS], y: pl.InOut[ROWS]):
    """Let signals alone, and then a collective, tell which of several ranks writes a row last."""
    buffer = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    cells = pld.window(buffer, [RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        writes_by_turns(x[r], t, cells, 5, device=r)
    pld.tensor.barrier(cells)
    for r in pl.range(pld.world_size()):
        writes_by_turns(x[r], t, cells, 0, device=r)
    for r in pl.range(pld.world_size()):
        copies(t[r], y[r], device=r)
    return y


@pl.jit
def adds(x: ROW, y: pl.InOut[ROW]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0], [64]), [0], y, atomic=pl.AtomicType.Add)


@pl.jit.host
def added(x: ROWS, t: pl.InOut[ROWS], y: pl.InOut[ROWS]):
    """Let all ranks add to one row."""
    for r in pl.range(pld.world_size()):
        adds(x[r], y[1], device=r)
    return y


@pl.jit
def adds_and_meets(x: ROW, y: pl.InOut[ROW], cells: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.barrier(cells)
        pl.store(pl.load(x, [0], [64]), [0], y, atomic=pl.AtomicType.Add)


@pl.jit.host
def added_at_once(x: ROWS, t: pl.InOut[ROWS], y: pl.InOut[ROWS]):
    """Let all ranks add to one row while they wait for each other."""
    buffer = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        adds_and_meets(x[r], y[1], pld.window(buffer, [RANKS, 1], dtype=pl.INT32), device=r)
    return y


@pl.jit.host
def own(x: ROWS, y: pl.Out[ROWS]):
    made = pl.create_tensor([RANKS, 64], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        copies(x[r], made[r], device=r)
    for r in pl.range(pld.world_size()):
        copies(made[(r + 1) % RANKS], y[r], device=r)
    return y


def main(platform: str = "cpu") -> None:
    config = RunConfig(platform=platform, device_ids=range(RANKS))
    x = np.repeat(np.arange(1.0, RANKS + 1, dtype=np.float32)[:, None], 64, axis=1)
    by_host = {
        overwritten: [50, 50, 50],
        written_twice: [2, 50, 50],
        written_by_turns: [202, 203, 201],
        added: [70, 76, 70],
    }
    for host, expected in by_host.items():
        t, y = np.full((RANKS, 64), 50, np.float32), np.full((RANKS, 64), 70, np.float32)
        for _ in range(2):
            t[:], y[:] = 50, 70
            host(x, t, y, config=config)
            print(f"{host.name}: {'right' if (y == np.array(expected)[:, None]).all() else y[:, 0].tolist()}")
    for host in (added_at_once, own):
        try:
            y = np.zeros_like(x)
            host(*([x, y] if host is own else [x, np.zeros_like(x), y]), config=config)
            print(f"{host.name}: {y[:, 0].tolist()}")
        except ExecutionError as error:
            print(f"{host.name}: {error.message}; {error.help}")


if __name__ == "__main__":
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        import torch

        torch.distributed.init_process_group("gloo")  # pyright: ignore[reportUnknownMemberType]
    main()
