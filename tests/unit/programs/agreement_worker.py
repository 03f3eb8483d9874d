"""One process of two, or three: calls that do not fit those of the others, come late, or on groups made anew."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from processes import LATE, await_note, note, noted
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.runtime import RunConfig

MODE, RANK, RANKS = sys.argv[-1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SIZE, SOON, THREADS = 8, 15.0, 3
NR = pl.dynamic("NR")
Rows = pl.Tensor[[NR, 1, SIZE], pl.FP32]


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
def summed(x: Rows, y: pl.Out[Rows]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    row = pld.window(rows, [1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        publish(x[r], row, device=r)
    row = pld.tensor.allreduce(row)
    for r in pl.range(pld.world_size()):
        consume(row, y[r], device=r)
    return y


@pl.jit.host
def copied(x: Rows, y: pl.Out[Rows]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    row = pld.window(rows, [1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        publish(x[r], row, device=r)
        consume(row, y[r], device=r)
    return y


@pl.jit.host
def chosen(x: Rows, n: pl.Tensor[[2], pl.INT32], y: pl.Out[Rows]):
    """Let each rank copy its row, or another one, as elements say: to where, and how often."""
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    row = pld.window(rows, [1, SIZE], dtype=pl.FP32)
    for _ in pl.range(pl.read(n, [1])):
        for r in pl.range(pld.world_size()):
            publish(x[r], row, device=r)
            consume(row, y[(r + pl.read(n, [0])) % pld.world_size()], device=r)
    return y


@pl.jit.host
def roomy(x: Rows, n: pl.Tensor[[2], pl.INT32], y: pl.Out[Rows]):
    """Lay out as much as elements say."""
    rows = pld.alloc_window_buffer(4 * SIZE * pl.read(n, [0]))
    row = pld.window(rows, [1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        publish(x[r], row, device=r)
        consume(row, y[r], device=r)
    return y


@pl.jit
def scaled(x: pl.Tensor[[1, SIZE], pl.FP32], by: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(x, [0, 0], [1, SIZE]) * by, [0, 0], y)
    return y


@pl.jit.host
def told(x: Rows, n: pl.Tensor[[2], pl.INT32], y: pl.Out[Rows]):
    """Give each rank a number that its process has."""
    for r in pl.range(pld.world_size()):
        scaled(x[r], pl.read(n, [r]), y[r], device=r)
    return y


def called(name: str, *args: Any, timeout: float = 3 * LATE, config: Any = None, function: Any = summed) -> str:
    """Call a host function; return what comes of it, and whether that was soon."""
    ranks = RunConfig(distributed_config=DistributedConfig(range(RANKS), timeout_s=timeout))
    since = time.monotonic()
    try:
        made: Any = function(*args, config=ranks if config is None else config)
        held = made.to_local() if isinstance(made, DTensor) else made
        said = "right" if torch.equal(held, torch.full_like(held, RANKS)) else "wrong"
    except (RuntimeError, TypeError, ValueError) as error:
        said = f"{type(error).__name__} {error}".replace("\n", " | ")
    return f"{name}: {said} [{'soon' if time.monotonic() - since < LATE else 'late'}]"


def call(name: str, *args: Any, **options: Any) -> None:
    """Call a host function, and print what comes of it."""
    print(called(name, *args, **options), flush=True)


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(shape or (RANKS, 1, SIZE), dtype=dtype)


def arguments() -> None:
    """Pass what does not fit in one process: in the first call, and where all have made ready before."""
    call("fits" if RANK else "first", *([ones(RANKS, 1, SIZE + 1)] if RANK else [ones()]))
    is_bad = RANK == 1
    for _ in range(2):
        call("next", ones())
        call("shape", ones(RANKS, 1, SIZE + is_bad))
        call("next", ones())
        call("dtype", ones(dtype=torch.float64 if is_bad else torch.float32))
        call("missing", *([] if is_bad else [ones()]))
        call("ranks", ones(), config=RunConfig(device_ids=range(RANKS + is_bad)))
    call("next", ones())


def elements() -> None:
    """Plan what elements say that are not the same in all processes."""
    ranked = RANKS * ones()
    for _ in range(2):
        call("same", ranked, torch.tensor([1, 2], dtype=torch.int32), function=chosen)
        call("place", ranked, torch.tensor([RANK, 1], dtype=torch.int32), function=chosen)
        call("count", ranked, torch.tensor([0, 1 + RANK], dtype=torch.int32), function=chosen)
        call("nothing", ranked, torch.tensor([0, RANK], dtype=torch.int32), function=chosen)
        call("view", ranked, torch.tensor([0, 0, 1, 1, 9], dtype=torch.int32)[RANK :: 2 - RANK][:2], function=chosen)
        call("room", ranked, torch.tensor([1 + RANK, 1], dtype=torch.int32), function=roomy)
    own = [RANKS if rank == RANK else 7 for rank in range(2)]
    call("told", ones(), torch.tensor(own, dtype=torch.int32), function=told)
    strided = torch.tensor([0, 1, 1, 1], dtype=torch.int32)[::2] if RANK else torch.tensor([0, 1], dtype=torch.int32)
    wide = ranked[:1].expand(RANKS, 1, SIZE) if RANK else ranked
    call("strided", wide, strided, function=chosen)
    call("next", ones())


def shards() -> None:
    """Pass DTensors of other shapes, placements and elements in one process."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=3 * LATE))
    mesh: Any = init_device_mesh("cpu", (RANKS,))
    is_bad = RANK == 1

    def placed(local: torch.Tensor, placement: Placement) -> Any:
        return DTensor.from_local(local, mesh, [placement], run_check=False)

    def row() -> Any:
        return placed(ones(1, 1, SIZE), Shard(0))

    others = {
        "next": row(),
        "longer": placed(ones(2, 1, SIZE), Shard(0)),
        "whole": placed(ones(), Replicate()),
        "columns": placed(ones(RANKS, 1, SIZE // RANKS), Shard(2)),
        "doubles": placed(ones(1, 1, SIZE, dtype=torch.float64), Shard(0)),
        "plain": ones(),
        "recorded": row().requires_grad_(),
    }
    ranks = RunConfig(device_ids=range(RANKS))
    for name, other in others.items():
        call(name, other if is_bad else row(), config=ranks)
        call("next", row(), config=ranks)
    call("gathered", placed(ones(), Replicate()), config=ranks)
    dist.destroy_process_group()


def late() -> None:
    """Come late to the first call."""
    others = [rank for rank in range(RANKS - 1) if rank != RANK]
    note(f"here {RANK}")
    for rank in others:
        await_note(f"{'told' if RANK == RANKS - 1 else 'here'} {rank}")
    call("first", ones(), timeout=SOON)
    note(f"told {RANK}")
    call("next", ones())
    call("again", ones())


def anew() -> None:
    """Make groups and leave them, at once; between them calls need none."""
    for _ in range(3):
        call("found", ones())
        dist.init_process_group("gloo")
        call("made", ones())
        call("made", ones())
        dist.destroy_process_group()


def functions() -> None:
    """Call one function in one process, and another in the other: where none, one or both have made ready."""
    other = copied if RANK else summed
    for _ in range(2):
        call("other", ones(), function=other)
        call("next", ones())
    call("next", RANKS * ones(), function=copied)
    for _ in range(2):
        call("warm", ones(), function=other)
        call("next", RANKS * ones(), function=copied)
        call("next", ones())


def stopped() -> None:
    """Stop a process before it comes to a call that all have made ready for, until the others are told."""
    call("first", ones(), timeout=SOON)
    if RANK == 1:
        note(f"stopping {os.getpid()}")
        os.kill(os.getpid(), signal.SIGSTOP)
    call("stopped", ones(), timeout=SOON)
    note(f"told {RANK}")
    if RANK == 0:
        await_note(f"told {RANKS - 1}")
        os.kill(noted("stopping"), signal.SIGCONT)
    call("next", ones())


def threads() -> None:
    """Call a host function from several threads: before any is made ready, and behind calls that have failed."""
    beside("first", lambda: ones())
    call("misfit", ones(RANKS, 1, SIZE + RANK))
    beside("behind", lambda: ones())
    beside("misfits", lambda: ones(RANKS, 1, SIZE + RANK))
    call("last", ones())


def beside(name: str, made: Callable[[], torch.Tensor]) -> None:
    """Make three calls on threads that have all begun."""
    begun = threading.Barrier(THREADS)

    def one(_: int) -> str:
        begun.wait()
        return called(name, made())

    with ThreadPoolExecutor(THREADS) as pool:
        print(*pool.map(one, range(THREADS)), sep="\n", flush=True)


{
    "threads": threads,
    "stopped": stopped,
    "functions": functions,
    "arguments": arguments,
    "elements": elements,
    "shards": shards,
    "late": late,
    "anew": anew,
}[MODE]()
