"""One process of two: ends right after it has talked to the other, on groups of its own and on ones that it left."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch.distributed as dist

IS_MADE = sys.argv[-1] == "made"
if IS_MADE:
    dist.init_process_group("gloo")


def threads() -> list[str]:
    """Return the names of the threads that are there and let go of tensors once gloo has moved them."""
    names: list[str] = []
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):  # of one that ends meanwhile
            names.append(path.read_text().strip())
    return [name for name in names if "gloo_runloop" in name]


def tell() -> None:
    print(f"left: {threads()}", flush=True)


atexit.register(tell)  # before Tilewright's, and so called after it

import numpy as np  # noqa: E402

import tilewright.language as pl  # noqa: E402
import tilewright.language.distributed as pld  # noqa: E402
from tilewright.ir.distributed_compiled_program import DistributedConfig  # noqa: E402
from tilewright.runtime import RunConfig  # noqa: E402

SIZE = 8


@pl.jit
def publish(x: pl.Tensor[[1, SIZE], pl.FP32], row: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], row)


@pl.jit
def consume(row: pld.DistributedTensor[[1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(row, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.host
def reduced(x: pl.Tensor[[2, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, SIZE], pl.FP32]]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    row = pld.window(rows, [1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        publish(x[r], row, device=r)
    row = pld.tensor.allreduce(row)
    for r in pl.range(pld.world_size()):
        consume(row, y[r], device=r)
    return y


def run(group: Any = None) -> None:
    x, y = np.ones((2, 1, SIZE), np.float32), np.zeros((2, 1, SIZE), np.float32)
    reduced(x, y, config=RunConfig(distributed_config=DistributedConfig([0, 1], process_group=group)))
    print(f"sums: {np.unique(y).tolist()}", flush=True)


run()
if IS_MADE:
    run(dist.new_group([0, 1]))  # pyright: ignore[reportUnknownMemberType]
    dist.destroy_process_group()
    place = f"file://{os.environ['TILEWRIGHT_CACHE_DIR']}/second"
    dist.init_process_group("gloo", place, rank=int(os.environ["RANK"]), world_size=2)  # the same function runs on it
    run()
    dist.destroy_process_group()
