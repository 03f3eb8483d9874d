"""One of several processes whose messages are long on their way: two programs in turns, each made ready once."""

from __future__ import annotations

import os
import time
from typing import Any
from unittest.mock import patch

import numpy as np

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.programs.distributed.link import Link
from tilewright.runtime import RunConfig

RANK, RANKS, CALLS, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 12, 64
ON_ITS_WAY = 0.04
"""Seconds, in which the others go on to the next call, and tell this process that they wait for it there."""
NR = pl.dynamic("NR")
X = pl.Tensor[[1, SIZE], pl.FP32]
XS = pl.Tensor[[NR, 1, SIZE], pl.FP32]


@pl.jit
def scaled(x: X, by: pl.Scalar[pl.FP32], y: pl.Out[X]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(x, [0, 0], [1, SIZE]) * by, [0, 0], y)
    return y


@pl.jit.host
def doubled(x: XS, y: pl.Out[XS]):
    for r in pl.range(pld.world_size()):
        scaled(x[r], 2.0, y[r], device=r)
    return y


@pl.jit.host
def tripled(x: XS, y: pl.Out[XS]):
    for r in pl.range(pld.world_size()):
        scaled(x[r], 3.0, y[r], device=r)
    return y


def main() -> None:
    heard: Any = vars(Link)["_heard"]

    def hear_late(self: Link, source: int, message: Any) -> None:
        time.sleep(ON_ITS_WAY * ((RANK + source) % 2))
        heard(self, source, message)

    patch.object(Link, "_heard", hear_late).start()
    x: Any = np.ones((RANKS, 1, SIZE), np.float32)
    for call in range(CALLS):
        for by, host in ((2, doubled), (3, tripled)):
            for again in range(2):
                y = np.zeros_like(x)
                host(x, y, config=RunConfig(device_ids=range(RANKS)))
                assert (y == by).all(), (call, by, again)
    print("in turns", flush=True)


if __name__ == "__main__":
    main()
