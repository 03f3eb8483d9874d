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
    for host, expected in ((overwritten, [50, 50, 50]), (written_twice, [2, 50, 50])):
        t, y = np.full((RANKS, 64), 50, np.float32), np.full((RANKS, 64), 70, np.float32)
        for _ in range(2):
            t[:], y[:] = 50, 70
            host(x, t, y, config=config)
            print(f"{host.name}: {'right' if (y == np.array(expected)[:, None]).all() else y[:, 0].tolist()}")
    try:
        y = own(x, config=config)
        print(f"own: {y[:, 0].tolist()}")
    except ExecutionError as error:
        print(f"own: {error.message}; {error.help}")


if __name__ == "__main__":
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        import torch

        torch.distributed.init_process_group("gloo")  # pyright: ignore[reportUnknownMemberType]
    main()
