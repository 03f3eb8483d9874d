"""The harness: rounds that take turns, medians, and one section of RESULTS.md per benchmark."""

from __future__ import annotations

import gc
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random
from typing import Protocol, TypeVar

from rich.console import Console
from rich.table import Table

T = TypeVar("T")
RESULTS = Path(__file__).with_name("RESULTS.md")
LOAD = os.getloadavg()[0]
"""How busy the machine was before a benchmark made it busier."""


@dataclass(frozen=True)
class Timing:
    """Milliseconds on the clock and on the processor, and how often somebody else took the processor meanwhile.

    Of the processor's, `caller` are those of the thread that asked: what others do beside it costs no time where there
    is a processor for them.
    """

    wall: float
    cpu: float
    interruptions: int = 0
    caller: float = 0.0


def timed(work: Callable[[], object], calls: int = 1) -> Timing:
    """Run `work` so many times, with garbage from before collected, and return how long one of them took."""
    gc.collect()
    before = _interruptions()
    wall, cpu, caller = time.perf_counter(), time.process_time(), time.thread_time()
    for _ in range(calls):
        work()
    wall, cpu, caller = time.perf_counter() - wall, time.process_time() - cpu, time.thread_time() - caller
    wall, cpu, caller = (1e3 * each / calls for each in (wall, cpu, caller))
    return Timing(wall, cpu, _interruptions() - before, caller)


def _interruptions() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def fresh_python(code: str) -> str:
    """Return what a new Python prints that runs `code`; it keeps bytecode, as one does that nobody told otherwise."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def interleaved(
    cases: Mapping[str, Callable[[], T]], rounds: int, warmup: int = 1, tick: Callable[[], object] = lambda: None
) -> dict[str, list[T]]:
    """Run every case once a round, so that a slow minute of the machine falls on all of them alike.

    Each round has another order, so that nobody always follows the same one, who leaves it more or less in the caches;
    `tick` is called after each.
    """
    for case in [*cases.values()] * warmup:
        case()
    found: dict[str, list[T]] = {name: [] for name in cases}
    for turn in range(rounds):
        for name in Random(turn).sample([*cases], len(cases)):
            found[name].append(cases[name]())
        tick()
    return found


def median(timings: Sequence[Timing]) -> Timing:
    """Return the median of each clock."""
    wall, cpu, caller = (statistics.median(getattr(t, clock) for t in timings) for clock in ("wall", "cpu", "caller"))
    return Timing(wall, cpu, caller=caller)


def machine() -> str:
    """Return the processor, how many of it, the system, the Python that runs and how busy the machine was."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists() and (model := re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)):
        cpu = model[1]
    version = f"{platform.python_implementation()} {platform.python_version()}"
    load = f"load {LOAD:.1f} at the start"
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, {version}, {load}"


class Part(Protocol):
    """A part of a section: something to draw on the terminal and to write to RESULTS.md."""

    def show(self) -> None: ...

    def markdown(self) -> str: ...


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
            drawn.add_column(column, justify="right" if position else "left", no_wrap=not position)
        for row in self.rows:
            drawn.add_row(*row)
        console = Console()
        (console if console.is_terminal else Console(width=150)).print(drawn)

    def markdown(self) -> str:
        """Return the table as it stands in RESULTS.md."""
        align = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [self.columns, align, *self.rows]
        return "\n".join([f"### {self.title}", "", *(f"| {' | '.join(line)} |" for line in lines)])


@dataclass(frozen=True)
class Remarks:
    """A list of sentences, each about one thing."""

    title: str
    lines: Mapping[str, str]

    def show(self) -> None:
        """Print the list on the terminal."""
        print("\n".join([self.title, *(f"- {subject}: {line}" for subject, line in self.lines.items())]))

    def markdown(self) -> str:
        """Return the list as it stands in RESULTS.md."""
        return "\n".join([f"### {self.title}", "", *(f"- **{who}**: {line}" for who, line in self.lines.items())])


def save(name: str, notes: str, parts: Sequence[Part], path: Path = RESULTS) -> None:
    """Write a benchmark's section of the results between its markers, leaving the others as they are."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    command = " ".join(["python", f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    head = f"## {name}\n\n{date.today().isoformat()}, {machine()}: `{command}`\n\n{notes}"
    section = "\n\n".join([begin, head, *(part.markdown() for part in parts), end])
    text = path.read_text(encoding="utf-8") if path.exists() else "# Results\n\nEach benchmark rewrites its section.\n"
    if begin in text:
        before, rest = text.split(begin, 1)
        text = before + section + rest.split(end, 1)[1]
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    path.write_text(text, encoding="utf-8")
