"""One process of two: one of them computes for long, is interrupted, or goes; prints what the other is told."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
from processes import LATE, await_note, note

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright import ir
from tilewright.errors import ExecutionError
from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.runtime import RunConfig

RANK, MODE = int(os.environ["RANK"]), sys.argv[-1]
ENDLESS, SECONDS = 1 << 30, 9.0
X = pl.Tensor[[1, 8], pl.FP32]


@pl.jit
def sines(x: X, times: pl.Scalar[pl.INT32], y: pl.Out[X]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.load(x, [0, 0], [1, 8])
        for _ in pl.range(times):
            acc = pl.sin(acc)
        y = pl.store(acc, [0, 0], y)
    return y


@pl.jit.host
def host(x: pl.Tensor[[2, 1, 8], pl.FP32], times: pl.Tensor[[2], pl.INT32], y: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):  # a number that is read: every call plans anew
        sines(x[r], pl.read(times, [r]), y[r], device=r)
    return y


@pl.jit.host
def kept(x: pl.Tensor[[2, 1, 8], pl.FP32], times: pl.Tensor[[2], pl.INT32], y: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        sines(x[r], 1, y[r], device=r)
    return y


@pl.program
class Unbound:
    """A program with a function of Python's that nobody has said, which rank 0 alone would run."""

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: X, y: pl.Out[X]) -> X:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], y)
        return y

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def unsaid(y: pl.InOut[pl.Tensor[[2, 1, 8], pl.FP32]]): ...  # pyright: ignore[reportGeneralTypeIssues, reportSelfClsParameterName]

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[2, 1, 8], pl.FP32],
        times: pl.Tensor[[2], pl.INT32],
        y: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]],
    ):
        for r in pl.range(2):
            self.chip(x[r], y[r], device=r)  # pyright: ignore[reportCallIssue]
        self.unsaid(y)  # pyright: ignore[reportCallIssue]
        return y


def attempt(
    name: str, first: int, second: int, timeout: float = 3 * LATE, host: Callable[..., Any] = host, apart: int = 1
) -> None:
    x, y = np.ones((2, apart, 8), np.float32)[:, :1], np.zeros((2, 1, 8), np.float32)
    config = RunConfig(distributed_config=DistributedConfig([0, 1], timeout_s=timeout))
    since = time.monotonic()
    try:
        host(x, np.array([first, second], np.int32), y, config=config)
        said = "right" if y.all() else "wrong"
    except (ExecutionError, KeyboardInterrupt) as error:
        said = f"{type(error).__name__} {error}".replace("\n", " | ")
    late = "late" if time.monotonic() - since > LATE else "in time"
    print(f"{name}: {said} [{late}]", flush=True)


def measured() -> int:
    """Return how many sines take a processor a while."""
    times, took = 1 << 12, 0.0
    while took < SECONDS / 32:
        times, since = 2 * times, time.process_time()
        sines(np.ones((1, 8), np.float32), times, np.zeros((1, 8), np.float32))
        took = time.process_time() - since
    return int(times * SECONDS / took)


if MODE.startswith("hangs"):
    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
if MODE == "absent" and RANK == 1:
    sys.exit()
attempt("first", 1, 1, 3.0 if MODE == "absent" else 3 * LATE)
if MODE == "long":
    times = measured()
    attempt("meet", 1, 1)  # however long each of them has measured for
    attempt("computes", 1, times, SECONDS / 3)
elif MODE == "unplanned":
    program = ir.compile(Unbound, distributed_config=DistributedConfig([0, 1]))
    attempt("unplanned", 1, 1, host=lambda *args, **_: program(*args))
    attempt("recovers", 1, 1)
elif MODE == "otherwise":
    for apart in ((1, 1), (2, 1), (1, 1), (1, 2), (2, 2), (2, 1), (1, 2), (1, 1), (2, 2), (1, 2), (2, 1), (1, 1)):
        attempt("lies", 1, 1, 3 * LATE, kept, apart[RANK])  # the same elements, in one process further apart
elif MODE == "interrupt":
    if RANK == 0:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    attempt("interrupted", ENDLESS, 1)
    attempt("recovers", 1, 1)
elif MODE.startswith("hangs"):
    attempt("kept", 1, 1, host=kept)
    if RANK == 1:
        await_note("told")
        os._exit(0)
    attempt("hangs", 1, 1, host=kept if MODE == "hangs" else host)
    note("told")
    os._exit(0)  # the group is broken
elif MODE == "gone":
    if RANK == 1:
        raise SystemExit(0)
    attempt("gone", 1, 1)
