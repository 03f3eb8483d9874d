"""Programs of many ranks: what a dispatch costs, and host collectives beside torch.distributed's.

    python bench/distributed.py                                    # ranks are threads of this process
    torchrun --nproc-per-node 2 bench/distributed.py               # ranks are processes, beside gloo

Each row is the least of several rounds. `--plan` shows what planning takes as ranks grow, none of them running.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.core.program import Program
from tilewright.core.region import Region, whole
from tilewright.interpret.hosts import HostMachine
from tilewright.runtime import RunConfig

NR = pl.dynamic("NR")
DISPATCHES = 200
SIZES = (1 << 12, 1 << 16, 1 << 20)
RANKS = int(os.environ.get("WORLD_SIZE", "2"))


@pl.jit
def copy(x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], y)
    return y


@pl.jit.host
def many(x: pl.Tensor[[NR, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]]):
    for _ in pl.range(DISPATCHES):
        for r in pl.range(pld.world_size()):
            copy(x[r], y[r], device=r)
    return y


@pl.jit.host
def once(x: pl.Tensor[[NR, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        copy(x[r], y[r], device=r)
    return y


def reducing(size: int) -> pl.JITFunction:
    """Return a host function that all-reduces a window of so many elements ten times."""

    @pl.jit.host
    def reduce(x: pl.Tensor[[NR, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]]):
        rows = pld.alloc_window_buffer(size * pl.FP32.get_byte())
        cells = pld.alloc_window_buffer(pld.world_size() * pl.INT32.get_byte())
        data = pld.window(rows, [1, size], dtype=pl.FP32)
        signal = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
        for _ in pl.range(10):
            data = pld.tensor.allreduce(data, signal)
        for r in pl.range(pld.world_size()):
            copy(x[r], y[r], device=r)
        return y

    return reduce


def best(run: Callable[[], object], rounds: int = 7) -> float:
    """Return the seconds of the quickest of several runs, one before them not counted."""
    run()
    times: list[float] = []
    for _ in range(rounds):
        since = time.perf_counter()
        run()
        times.append(time.perf_counter() - since)
    return min(times)


def show(name: str, text: str) -> None:
    if os.environ.get("RANK", "0") == "0":
        print(f"{name:32} {text}", flush=True)


def dispatches(config: RunConfig) -> None:
    x, y = torch.rand(RANKS, 1, 64), torch.zeros(RANKS, 1, 64)
    a, b = x[0].clone(), y[0].clone()

    def warm() -> None:
        for _ in range(DISPATCHES):
            copy(a, b)

    call = best(warm) / DISPATCHES
    several, one = many.compile(config=config), once.compile(config=config)
    whole, single = best(lambda: several(x, y)), best(lambda: one(x, y), 30)
    beyond = (whole - single) / (DISPATCHES - 1) - call
    show("a warm call", f"{1e6 * call:.2f} us")
    show("a dispatch beyond it", f"{1e6 * beyond:.2f} us")
    show("a call of a host function", f"{1e6 * single:.0f} us")


def collectives(config: RunConfig) -> None:
    x, y = torch.rand(RANKS, 1, 64), torch.zeros(RANKS, 1, 64)
    base = once.compile(config=config)
    nothing = best(lambda: base(x, y), 30)
    for size in SIZES:
        program = reducing(size).compile(config=config)
        ours = (best(lambda program=program: program(x, y)) - nothing) / 10
        text = f"{1e6 * ours:.0f} us"
        if dist.is_initialized():
            data = torch.rand(size)
            theirs = best(lambda data=data: [dist.all_reduce(data) for _ in range(10)]) / 10
            text += f", torch.distributed {1e6 * theirs:.0f} us, {ours / theirs:.2f} times it"
        show(f"all-reduce of {4 * size >> 10} KiB", text)


def plans() -> None:
    for ranks in (8, 64, 1024):
        x, y = torch.rand(ranks, 1, 64), torch.zeros(ranks, 1, 64)
        program, args = once.specialize(x, y).program, [whole(x.numpy()), whole(y.numpy())]
        seconds = best(partial(_plan, program, ranks, args), 3)
        show(f"planning {ranks} ranks", f"{1e3 * seconds:.1f} ms, {1e6 * seconds / ranks:.0f} us a dispatch")


def _plan(program: Program, ranks: int, args: list[Region]) -> None:
    HostMachine(program, ranks).planned("once", args)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--plan", action="store_true", help="only what planning takes")
    if options.parse_args().plan:
        plans()
        return
    config = RunConfig(device_ids=range(RANKS))
    dispatches(config)
    collectives(config)


if __name__ == "__main__":
    main()
