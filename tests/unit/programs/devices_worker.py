"""One process of several whose rank runs on a device: a GPU, or the processor in place of one; prints what it saw."""

from __future__ import annotations

import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import torch
from processes import LATE

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ExecutionError
from tilewright.programs.distributed.ranked import Ranked
from tilewright.runtime import DistributedConfig, RunConfig

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
NR = pl.dynamic("NR")
S = pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]
Rows = pl.Tensor[[NR, 1], pl.INT32]


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
def meeting(x: Rows, y: pl.Out[Rows], z: pl.Out[Rows]):
    cells = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        meets(x[r], y[r], pld.window(cells, [1, 1], dtype=pl.INT32), device=r)
    for r in pl.range(pld.world_size()):
        doubles(y[(r + 1) % pld.world_size()], z[r], device=r)
    return y, z


def attempt(name: str, device: str, wanted: int = SIZE, last: int = SIZE) -> None:
    """Let all ranks meet, and print what they give, or what went wrong."""
    x = torch.full((SIZE, 1), wanted, dtype=torch.int32, device=device)
    x[-1] = last
    y, z = torch.zeros_like(x), torch.zeros_like(x)
    config = RunConfig(distributed_config=DistributedConfig(range(SIZE), timeout_s=3 * LATE))
    since = time.monotonic()
    try:
        meeting(x, y, z, config=config)
        right = torch.arange(SIZE, dtype=torch.int32) * 10 + SIZE
        is_right = torch.equal(y.cpu()[:, 0], right) and torch.equal(z.cpu()[:, 0], 2 * right.roll(-1))
        found: Any = "right" if is_right else f"wrong {y} {z}".replace("\n", " ")
    except ExecutionError as error:
        found = str(error).replace("\n", " | ")
    print(f"{name}: {found} [{'late' if time.monotonic() - since > LATE else 'in time'}]", flush=True)


def examples() -> None:
    """Run every example of many ranks on these processes, and say which gave what torch does."""
    for path in sorted((Path(__file__).parents[3] / "examples" / "distributed").glob("*.py")):
        if path.stem == "hand_written_ring":  # on GPUs ranks do not wait by pointers
            continue
        module = runpy.run_path(str(path))
        for way in module.get("WAYS", [None]):
            with torch.device("cuda"):
                got, wanted = module["run"](SIZE, platform="cuda", **({} if way is None else {"way": way}))
            is_right = got.is_cuda and torch.allclose(got, wanted, rtol=1e-4, atol=1e-3)
            print(f"example {path.stem}{f' {way}' if way else ''}: {'right' if is_right else 'wrong'}", flush=True)


def main(device: str) -> None:
    """Run what works, what fails, what works again, and at last what a process leaves in the middle of."""
    if device == "cpu":
        from unit.programs.host_devices import HostDevices

        devices: Any = HostDevices()
        Ranked.devices = devices
        devices.is_out_of_reach = RANK == 1
        attempt("far", device)
        devices.is_out_of_reach = False
    torch.manual_seed(1)  # pyright: ignore[reportUnknownMemberType]
    for name in ("works", "again", "once more"):
        attempt(name, device)
    attempt("raises", device, last=-1)
    attempt("recovers", device)
    attempt("hangs", device, SIZE + 5)
    attempt("recovers", device)
    if device == "cuda":
        examples()
    if RANK == SIZE - 1:
        time.sleep(1)
        os._exit(0)
    attempt("dies", device)
    os._exit(0)  # of a group one of whose processes is gone nobody takes leave


main(sys.argv[1])
