"""Measure what looking at kernels costs: timelines, perf maps, the explorer's page, and running line by line.

Contenders take turns in one process. A ratio is taken within a round, in processor time: whoever else uses the machine
slows both sides of it. Budgets are those of the project.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

os.environ["TILEWRIGHT_CACHE_DIR"] = "off"
os.environ["TILEWRIGHT_NUM_THREADS"] = "1"

import numpy as np
from harness import Report, fresh_python, interleaved, save

import tilewright.language as pl
from tilewright.runtime import RunConfig

ROWS = 32
MICROSECONDS = 2000
"""How long a batch of calls takes, about."""


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], ROWS):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [ROWS, x.shape[1]])
            e = pl.exp(t - pl.row_max(t))
            pl.store(e / pl.row_sum(e), [r, 0], out)
    return out


@pl.jit
def untraced(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], ROWS):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [ROWS, x.shape[1]])
            e = pl.exp(t - pl.row_max(t))
            pl.store(e / pl.row_sum(e), [r, 0], out)
    return out


@dataclass
class Batch:
    """As many calls as a batch has, and what one of them takes in microseconds of the processor."""

    call: Callable[[], object]
    calls: int

    def __call__(self) -> float:
        begin, call = time.process_time_ns(), self.call
        for _ in range(self.calls):
            call()
        return (time.process_time_ns() - begin) / self.calls / 1e3


def batches(shape: tuple[int, int], timeline: str) -> dict[str, Batch]:
    """Return the same softmax called on a timeline, off it, and by a kernel that never was on one."""
    x = np.random.default_rng(0).random(shape).astype(np.float32)
    out, off, on = np.empty_like(x), RunConfig(), RunConfig(trace=timeline)
    calls: dict[str, Callable[[], object]] = {
        "on a timeline": lambda: softmax(x, out, config=on),
        "off it": lambda: softmax(x, out, config=off),
        "never on one": lambda: untraced(x, out, config=off),
    }
    for call in [*calls.values()] * 200:
        call()
    took = Batch(calls["never on one"], 20)()
    return {name: Batch(call, max(1, round(MICROSECONDS / took))) for name, call in calls.items()}


def timelines(rounds: int) -> Report:
    """Measure calls with and without a timeline, what is taken out of its ring meanwhile included."""
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in ((1000, 128), (1000, 512), (4096, 1024)):
            found = interleaved(batches(shape, os.path.join(folder, "timeline.json")), rounds)
            on, off, never = found.values()
            cells = [f"{statistics.median(each):.1f}" for each in (on, off, never)]
            chunks = -(-shape[0] // ROWS)
            verdicts = [_share(on, off, 1.02), _share(off, never, 1.01)]
            rows.append([f"softmax {shape[0]} x {shape[1]}, {chunks} chunks", *cells, *verdicts])
    columns = ["one thread", "on a timeline, us", "off it", "never on one", "on : off", "off : never"]
    return Report("A timeline, CPU time", columns, rows)


def _share(ours: Sequence[float], others: Sequence[float], most: float) -> str:
    """Return a ratio taken within rounds, and whether it is met."""
    ratio = statistics.median(a / b for a, b in zip(ours, others, strict=True))
    return f"{ratio:.3f} {'✓' if round(ratio, 3) <= most else '✗'} {most:g}"


MAPPED = """
import os, time
os.environ |= {"TILEWRIGHT_PERF": "map", "TILEWRIGHT_CACHE_DIR": "off"}
import numpy as np
import tilewright.language as pl
from tilewright.native import profilers
import sys; sys.path.insert(0, {folder!r})
from tools import softmax
os.environ["TILEWRIGHT_NUM_THREADS"] = "2"
took, announce = [], profilers.announce
def timed(*given):
    begin = time.thread_time_ns()
    announce(*given)
    took.append((time.thread_time_ns() - begin) / 1e3)
profilers.announce = timed
for columns in (64, 128, 256, 512):
    softmax.compile(np.ones((64, columns), np.float32))
os.unlink(profilers.map_path())
print(*took)
"""


EXPLORED = """
import sys, tempfile, time; sys.path.insert(0, {folder!r})
import numpy as np
from tools import softmax
x = np.ones((1000, 128), np.float32)
program = softmax.compile(x)
begin = time.process_time()
program.explore(output=tempfile.mkdtemp() + "/page.html")
print((time.process_time() - begin) * 1e3)
"""


def _here(code: str) -> str:
    """Return a script that finds this file."""
    return code.replace("{folder!r}", repr(os.path.dirname(os.path.abspath(__file__))))


def perf_maps(rounds: int) -> Report:
    """Measure what a kernel's lines in a perf map take: the first of a process, which writes a new file, and others."""
    found = [[float(each) for each in fresh_python(_here(MAPPED)).split()] for _ in range(rounds)]
    first = statistics.median(took[0] for took in found)
    later = statistics.median(statistics.median(took[1:]) for took in found)
    rows = [[name, f"{took:.0f}", _mark(took, 50)] for name, took in (("first", first), ("later", later))]
    return Report("A perf map, CPU time", ["kernel of a process", "us", "budget"], rows)


def _mark(took: float, most: float) -> str:
    return f"{'✓' if took <= most else '✗'} {most:g}"


def pages(rounds: int) -> Report:
    """Measure the explorer's page of a softmax just compiled, and a call line by line against the interpreter."""
    x = np.random.default_rng(0).random((256, 128)).astype(np.float32)
    interpreted = RunConfig(platform="interpret")
    cases: dict[str, Callable[[], Any]] = {
        "debug": lambda: softmax.debug(x),
        "interpreter": lambda: softmax(x, config=interpreted),
    }
    found = interleaved({name: Batch(call, 1) for name, call in cases.items()}, rounds)
    debug, plain = (statistics.median(each) / 1e3 for each in found.values())
    page = statistics.median(float(fresh_python(_here(EXPLORED))) for _ in range(rounds))
    rows = [
        ["the explorer's page of a softmax", f"{page:.1f}", f"{_mark(page, 300)} ms"],
        ["the interpreter, softmax 256 x 128", f"{plain:.1f}", ""],
        ["line by line, the same", f"{debug:.1f}", f"{_mark(round(debug / plain, 2), 3)} of it: {debug / plain:.2f}"],
    ]
    return Report("Pages and lines, CPU time", ["what", "ms", "budget"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=101, metavar="N", help="rounds of each contest (101)")
    parser.add_argument("--dry-run", action="store_true", help="print the results and write nothing")
    chosen = parser.parse_args()
    few = max(3, chosen.rounds // 10)
    parts = [timelines(chosen.rounds), perf_maps(few), pages(few)]
    for part in parts:
        part.show()
    if not chosen.dry_run:
        save("tools", "Medians of interleaved rounds, in processor time.", parts)


if __name__ == "__main__":
    sys.exit(main())
