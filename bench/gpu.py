"""The GPU: kernels as a user would write them, beside torch's own and Triton's, in one interleaved run.

    python bench/gpu.py [--json FILE] [--only WORD] [--rounds N] [--compiled]

Times are of the device, by events around replays of a graph, ours and the others' in random order, each the median of
its rounds; ours is compared with torch's first. `--compiled` has torch compile what memory sets the pace of, too. The
last table is of the host. Where there is no GPU it says so and ends.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import gpu_kernels

from tilewright.backends.cuda.driver import driver, is_there

if TYPE_CHECKING:
    import gpu_work

ROUNDS = 15
OTHERS = ("torch", "compiled", "triton")
SPAN = 4.0
"""Milliseconds that are timed at once, at least."""


def compared(work: gpu_work.Work) -> float:
    """Return how far apart ours and torch's results are, both run for the first time."""
    work.ours[-1]()
    mine, theirs = (each.flatten()[: 1 << 24].double() for each in (work.out, work.theirs[-1]()))
    return ((mine - theirs).norm() / theirs.norm()).item()


def repeated(torch: Any, calls: Sequence[Callable[[], Any]], is_graph: bool) -> Callable[[], None]:
    """Return what makes some calls again, as a graph without the host; only one where it is none."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    if not is_graph:
        return calls[0]
    found = torch.cuda.CUDAGraph()
    with torch.cuda.graph(found):
        for call in calls:
            call()
    return found.replay


def timed(torch: Any, call: Callable[[], None], count: int) -> float:
    """Return how long some calls take on the device, each, in microseconds."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return 1e3 * begin.elapsed_time(end) / count


def medians(torch: Any, contenders: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Return how long each contender takes, in microseconds; they take turns."""
    counts = {name: max(1, round(1e3 * SPAN / timed(torch, call, 2))) for name, call in contenders.items()}
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in random.sample(list(contenders.items()), len(contenders)):
            found[name].append(timed(torch, call, counts[name]))
    return {name: statistics.median(times) for name, times in found.items()}


def contenders_of(torch: Any, work: gpu_work.Work, is_compiled: bool) -> dict[str, Sequence[Callable[[], Any]]]:
    """Return who does a row's work, ours first."""
    found = {"ours": work.ours, "torch": work.theirs}
    if is_compiled and work.unit == "GB/s" and work.is_graph and len(work.theirs) == 1:
        found["compiled"] = (torch.compile(work.theirs[0], dynamic=False),)
    return {**found, "triton": (work.triton,)} if work.triton is not None else found


def measured(torch: Any, work: gpu_work.Work, rounds: int, is_compiled: bool) -> dict[str, Any]:
    """Return a row: the rates, the distance of the results, how long our first call took; or why there is none."""
    begin = time.perf_counter()
    try:
        work.ours[-1]()
        cold = 1e3 * (time.perf_counter() - begin)
        error = compared(work)
        every = contenders_of(torch, work, is_compiled)
        contenders = {name: repeated(torch, calls, work.is_graph) for name, calls in every.items()}
    except Exception as problem:
        return {"why": str(problem).splitlines()[0]}
    times = medians(torch, contenders, rounds)
    rates = {name: work.amount / taken for name, taken in times.items()}
    return {**rates, "error": error, "cold": cold, "unit": work.unit}


def host_times(torch: Any) -> dict[str, float]:
    """Return how long a call of a small kernel keeps the host, in microseconds."""
    x, y, out = (torch.randn(16, 64, device="cuda") for _ in range(3))
    work = {
        "ours, output given": lambda: gpu_kernels.add(x, y, out),
        "ours, returned": lambda: gpu_kernels.add(x, y),
        "torch.add(out=)": lambda: torch.add(x, y, out=out),
        "x + y": lambda: x + y,
    }
    found: dict[str, float] = {}
    for name, call in work.items():
        times: list[float] = []
        for _ in range(ROUNDS):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(200):
                call()
            times.append((time.perf_counter() - begin) / 200 * 1e6)
        found[name] = statistics.median(times)
    return found


def show(name: str, row: dict[str, Any], allowed: float) -> None:
    """Print a row."""
    if "why" in row:
        print(f"{name:24} not yet: {row['why']}", flush=True)
        return
    wrong = "" if row["error"] <= allowed else f"  WRONG BY {row['error']:.1e}"
    beside = "".join(f" {_rate(row, other)}" for other in OTHERS)
    print(f"{name:24} {row['ours']:8.0f}{beside}  {row['unit']:8} {row['cold']:.0f}{wrong}", flush=True)


def _rate(row: dict[str, Any], other: str) -> str:
    return f"{row[other]:8.0f} {row['ours'] / row[other]:6.2f}" if other in row else f"{'-':>8} {'-':>6}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Kernels on the GPU beside torch's own.")
    parser.add_argument("--json", help="write the figures to a file, too")
    parser.add_argument("--only", default="", help="rows whose names have this expression in them")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--compiled", action="store_true", help="beside what torch compiles, too")
    options = parser.parse_args()
    if not is_there():
        print("bench/gpu.py: skipped, there is no NVIDIA GPU")
        return
    import gpu_work
    import torch

    print(f"{driver().device_name(0)}, torch {torch.__version__}")
    beside = "".join(f" {name:>8}  ratio" for name in OTHERS)
    print(f"{'work':24} {'ours':>8}{beside}  unit     first call, ms")
    rows: dict[str, dict[str, Any]] = {}
    for work in gpu_work.every(torch):
        if re.search(options.only, work.name):
            rows[work.name] = measured(torch, work, options.rounds, options.compiled)
            show(work.name, rows[work.name], work.error)
    host = host_times(torch)
    for name, taken in host.items():
        print(f"{name:24} {taken:8.2f} us of the host")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"rows": rows, "host": host}, file, indent=1)


if __name__ == "__main__":
    main()
