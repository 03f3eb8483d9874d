"""Calls on the GPU: how long they keep the host, warm, first of a kernel, and first of a process that finds it kept.

    python bench/gpu_calls.py

Warm calls are of a small kernel, 200 at a time, in turns; what is compiled is new to the process, which has loaded
Triton already. Where there is no GPU it says so and ends.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from gpu_kernels import add, matmul, softmax

import tilewright.language as pl
from tilewright.backends.cuda.driver import is_there

ROUNDS, CALLS = 15, 200
KERNELS = ("add", "softmax", "matmul")


@pl.jit
def eight(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Eight launches, each of which needs the one before."""
    held = pl.create_tensor(x.shape, dtype=pl.FP32)
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [16, 64]), [row, 0], held)
    for _ in pl.range(6):
        for row in pl.parallel(0, x.shape[0], 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(held, [row, 0], [16, 64]) * 2.0 + 1.0, [row, 0], held)
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(held, [row, 0], [16, 64]), [row, 0], out)
    return out


def triton_add(x: Any, y: Any, out: Any) -> Callable[[], None]:
    """Return a call of the same kernel as Triton's users write it."""
    launch = importlib.import_module("triton_add").launch
    return lambda: launch(x, y, out)


def warm(torch: Any) -> dict[str, float]:
    """Return how long warm calls keep the host, in microseconds."""
    x, y, out = (torch.randn(16, 64, device="cuda") for _ in range(3))
    work: dict[str, Callable[[], Any]] = {
        "ours, output given": lambda: add(x, y, out),
        "torch.add(out=)": lambda: torch.add(x, y, out=out),
        "@triton.jit": triton_add(x, y, out),
        "ours, returned": lambda: add(x, y),
        "x + y": lambda: x + y,
        "ours, 8 launches": lambda: eight(x, out),
    }
    found: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(-2, ROUNDS):
        for name, call in work.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(CALLS):
                call()
            if turn >= 0:
                found[name].append((time.perf_counter() - begin) / CALLS * 1e6)
    return {name: statistics.median(times) for name, times in found.items()}


def first_calls(torch: Any) -> dict[str, float]:
    """Return how long each kernel's first call of this process takes until it is done, in milliseconds."""
    x, a = torch.rand(256, 4096, device="cuda"), torch.rand(512, 512, device="cuda").bfloat16()
    calls = {"add": lambda: add(x, x), "softmax": lambda: softmax(x), "matmul": lambda: matmul(a, a)}
    eight(x[:, :64].contiguous())  # loads what all programs need
    found: dict[str, float] = {}
    for name in KERNELS:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        calls[name]()
        torch.cuda.synchronize()
        found[name] = 1e3 * (time.perf_counter() - begin)
    return found


def of_a_process(cache: str) -> dict[str, float]:
    """Return first calls of a new process that keeps programs in a folder."""
    there = {**os.environ, "TILEWRIGHT_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, __file__, "--first"], env=there, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print the tables."""
    if not is_there():
        print("bench/gpu_calls.py: skipped, there is no NVIDIA GPU")
        return
    import torch

    if "--first" in sys.argv:
        print(json.dumps(first_calls(torch)))
        return
    for name, taken in warm(torch).items():
        print(f"{name:24} {taken:8.2f} us")
    with tempfile.TemporaryDirectory() as cache:
        made, kept = of_a_process(cache), of_a_process(cache)
    for name in KERNELS:
        print(f"{name:24} {made[name]:8.1f} ms compiled, {kept[name]:.1f} ms from the cache")


if __name__ == "__main__":
    main()
