"""One process of several: runs programs that work and programs that fail, and prints what it saw."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from processes import LATE, await_note, note

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ExecutionError
from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.runtime import RunConfig

RANK, SOON = int(os.environ["RANK"]), 5.0
S = pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]


@pl.jit
def meets(x: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT32]], signal: S):
    with pl.at(level=pl.Level.CORE_GROUP):
        wanted = pl.read(x, [0])
        pl.system.device_assert(wanted >= 0, message="x must not be negative")
        pld.system.notify(signal, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        if pld.rank(signal) < 1:
            pld.system.wait(signal, [0, 0], wanted, cmp=pld.WaitCmp.Eq)
        pl.write(y, [0], pld.rank(signal) * 10 + wanted)
    return y


@pl.jit
def doubles(x: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(y, [0], pl.read(x, [0]) * 2)
    return y


@pl.jit.host
def meeting(
    x: pl.Tensor[[2, 1], pl.INT32], y: pl.Out[pl.Tensor[[2, 1], pl.INT32]], z: pl.Out[pl.Tensor[[2, 1], pl.INT32]]
):
    cells = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        meets(x[r], y[r], pld.window(cells, [1, 1], dtype=pl.INT32), device=r)
    for r in pl.range(pld.world_size()):
        doubles(y[1 - r], z[r], device=r)
    return y, z


def attempt(name: str, first: int, second: int, timeout: float = 3 * LATE) -> None:
    x, y, z = np.array([[first], [second]], np.int32), np.zeros((2, 1), np.int32), np.zeros((2, 1), np.int32)
    config = RunConfig(distributed_config=DistributedConfig([0, 1], timeout_s=timeout))
    since = time.monotonic()
    try:
        meeting(x, y, z, config=config)
        found: Any = [*y.ravel().tolist(), *z.ravel().tolist()]
    except ExecutionError as error:
        found = str(error).replace("\n", " | ")
    print(f"{name}: {found} [{'late' if time.monotonic() - since > LATE else 'in time'}]", flush=True)


def examples() -> None:
    """Run every example of many ranks on these processes, and say which gave what torch does."""
    for path in sorted((Path(__file__).parents[3] / "examples" / "distributed").glob("*.py")):
        module = runpy.run_path(str(path))
        for way in module.get("WAYS", [None]):
            got, wanted = module["run"](2, **({} if way is None else {"way": way}))
            is_right = np.allclose(got, wanted, rtol=1e-4, atol=1e-3)
            print(f"example {path.stem}{f' {way}' if way else ''}: {'right' if is_right else 'wrong'}", flush=True)


def grouped() -> None:
    """Run on a process group that the script has made, with its ranks and not those of the launcher."""
    import torch.distributed as dist

    dist.init_process_group("gloo")  # behind the calls above
    group: Any = dist.new_group([0, 1])  # pyright: ignore[reportUnknownMemberType]
    x, y, z = (np.full((2, 1), value, np.int32) for value in (2, 0, 0))
    meeting(x, y, z, config=RunConfig(distributed_config=DistributedConfig([0, 1], process_group=group)))
    print(f"grouped: {y.ravel().tolist()}", flush=True)
    dist.destroy_process_group()


ROWS = pl.Tensor[[2, pl.dynamic("N")], pl.INT32]


@pl.jit
def copies(x: pl.Tensor[[pl.dynamic("N")], pl.INT32], y: pl.Out[pl.Tensor[[pl.dynamic("N")], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for k in pl.range(x.shape[0]):
            pl.write(y, [k], pl.read(x, [k]))
    return y


@pl.jit.host
def copying(x: ROWS, y: pl.Out[ROWS]):
    for r in pl.range(pld.world_size()):
        copies(x[r], y[r], device=r)
    return y


def differing() -> None:
    """Call with tensors of other shapes in each process: when both plan anew, and when one has its plan."""
    for columns in (3 + RANK, 3, 3 if RANK else 4, 4, 3 + RANK, 3):
        x, y = np.full((2, columns), 5, np.int32), np.zeros((2, columns), np.int32)
        try:
            copying(x, y, config=RunConfig(device_ids=[0, 1]))
            print(f"differing: {np.array_equal(x, y)}", flush=True)
        except ExecutionError as error:
            print(f"differing: {error}".replace("\n", " | "), flush=True)


examples()
grouped()
differing()
attempt("works", 2, 2)
attempt("again", 2, 2)
attempt("raises", 2, -1)
attempt("recovers", 2, 2)
attempt("hangs", 7, 2)
attempt("recovers", 2, 2)
attempt("soon", 2, 2, timeout=SOON)
if RANK == 1:
    await_note("waits")
attempt("waits", 2, 2, timeout=SOON)
note("waits")
attempt("recovers", 2, 2)
if RANK == 1:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
attempt("dies", 2, 2)
