"""The harness: rounds that take turns, medians, and one section of RESULTS.md per benchmark."""

from __future__ import annotations

import gc
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

T = TypeVar("T")
RESULTS = Path(__file__).with_name("RESULTS.md")


@dataclass(frozen=True)
class Timing:
    """Milliseconds on the clock and on the processor."""

    wall: float
    cpu: float


def timed(work: Callable[[], object]) -> Timing:
    """Run `work` once, with garbage from before collected, and return how long it took."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Timing(1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu))


def interleaved(cases: Mapping[str, Callable[[], T]], rounds: int, warmup: int = 1) -> dict[str, list[T]]:
    """Run every case once a round, so that a slow minute of the machine falls on all of them alike."""
    for _ in range(warmup):
        for case in cases.values():
            case()
    found: dict[str, list[T]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            found[name].append(case())
    return found


def median(timings: Sequence[Timing]) -> Timing:
    """Return the median of each clock."""
    return Timing(statistics.median(t.wall for t in timings), statistics.median(t.cpu for t in timings))


def machine() -> str:
    """Return the processor, how many of it, the system, the Python that runs and how busy the machine is."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists() and (model := re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)):
        cpu = model[1]
    version = f"{platform.python_implementation()} {platform.python_version()}"
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, {version}{load}"


@dataclass(frozen=True)
class Report:
    """One table of results; a row is its cells as text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def show(self) -> None:
        """Draw the table on the terminal."""
        drawn = Table(title=self.title, title_justify="left")
        for position, column in enumerate(self.columns):
            drawn.add_column(column, justify="right" if position else "left")
        for row in self.rows:
            drawn.add_row(*row)
        console = Console()
        (console if console.is_terminal else Console(width=120)).print(drawn)

    def markdown(self) -> str:
        """Return the table as it stands in RESULTS.md."""
        align = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [self.columns, align, *self.rows]
        return "\n".join([f"### {self.title}", "", *(f"| {' | '.join(line)} |" for line in lines)])


def save(name: str, notes: str, reports: Sequence[Report], path: Path = RESULTS) -> None:
    """Write a benchmark's section of the results between its markers, leaving the others as they are."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    command = " ".join(["python", f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    head = f"## {name}\n\n{date.today().isoformat()}, {machine()}: `{command}`\n\n{notes}"
    section = "\n\n".join([begin, head, *(report.markdown() for report in reports), end])
    text = path.read_text(encoding="utf-8") if path.exists() else "# Results\n\nEach benchmark rewrites its section.\n"
    if begin in text:
        before, rest = text.split(begin, 1)
        text = before + section + rest.split(end, 1)[1]
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    path.write_text(text, encoding="utf-8")
