"""Benchmark statistics: how long calls of a program took, and the program by itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from tilewright.forks import computed_once
from tilewright.notebook import Sheet
from tilewright.programs.timings import Timings
from tilewright.programs.trace import DEVICE, HOST, TraceInvocation, TraceSpan, mean_invocation

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("min", "median", "mean", "max", "stdev", "spread", "samples")
METRICS = ("device", "host", "effective", "union")


@dataclass(frozen=True)
class BenchmarkStats(Timings, Sheet):
    """How long calls took, in microseconds; `device` is the program alone, on arguments that have been checked.

    Timing either adds about 0.2 us to every run. The program is timed after the calls, so round `i` of both was not one
    run. `device` is all zeros where there is no machine code of its own to time, as on the interpreter.
    """

    device: Timings = Timings(())
    name: str = "program"
    warmup: int = 0

    @property
    def rounds(self) -> int:
        """How many calls were timed."""
        return self.samples

    @property
    def host_wall_us(self) -> list[float]:
        """How long each call took."""
        return list(self.times)

    @property
    def device_wall_us(self) -> list[float]:
        """How long the program itself took, run after run."""
        return list(self.device.times)

    @property
    def device_us_min(self) -> float:
        """The shortest run of the program itself."""
        return self.device.min

    @property
    def device_us_median(self) -> float:
        """The run of the program itself that is in the middle."""
        return self.device.median

    @property
    def device_us_mean(self) -> float:
        """The average run of the program itself."""
        return self.device.mean

    @property
    def device_us_max(self) -> float:
        """The longest run of the program itself."""
        return self.device.max

    @property
    def device_us_stdev(self) -> float:
        """The standard deviation of the program's own runs."""
        return self.device.stdev

    @property
    def all_zero_device(self) -> bool:
        """Whether nothing is known of the program itself."""
        return not any(self.device.times)

    # round by round

    @computed_once
    def invocations(self) -> Sequence[TraceInvocation]:
        """Each call as a trace of two spans, itself and the program in it."""
        return tuple(_invocation(self.name, n, times) for n, times in enumerate(zip(*self._both(), strict=True)))

    @property
    def rounds_dispatches(self) -> list[list[TraceInvocation]]:
        """What each round dispatched: one program."""
        return [[each] for each in self.invocations]

    @property
    def fallback_flattened(self) -> bool:
        """Whether dispatches could not be told apart by round: they always can."""
        return False

    @property
    def unstable_dispatch_slots(self) -> list[int]:
        """The dispatches that were not the same in each round: none."""
        return []

    def per_round(self, metric: str = "device") -> list[float]:
        """Return one time for each round: the program's, the call's, or `effective`, the first of them that is known.

        `union`, the time in which anything ran, is that of the one program here.
        """
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
        is_host = metric == "host" or (metric == "effective" and self.all_zero_device)
        return self.host_wall_us if is_host else self.device_wall_us

    def per_rank(self, metric: str = "device") -> dict[int, list[float]]:
        """Return the times of each rank, of which there is one."""
        return {0: self.per_round(metric)}

    def per_dispatch(self, metric: str = "device") -> list[list[float]]:
        """Return the times of each dispatch of a round, of which there is one."""
        return [self.per_round(metric)]

    @property
    def dispatch_groups(self) -> dict[str, list[TraceInvocation]]:
        """The calls by the program that they ran."""
        return {self.name: list(self.invocations)}

    @property
    def dispatch_tasks(self) -> list[str]:
        """The program that each dispatch of a round ran."""
        return [self.name]

    def mean_invocation(self) -> TraceInvocation:
        """Return a call whose spans take as long as those of all calls take on average."""
        return mean_invocation(self.invocations)

    # as text

    def __str__(self) -> str:
        """Return the numbers as a table."""
        rows = [[f"{self.name}, us", *COLUMNS], *([name, *_shown(series)] for name, series in self._series())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ([cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)] for row in rows)
        return "\n".join("  ".join([row[0].ljust(widths[0]), *line]) for row, line in zip(rows, lines, strict=True))

    def __rich__(self) -> Table:
        """Return the numbers as rich draws tables."""
        from rich.table import Table

        table = Table(title=f"{self.name}, microseconds")
        table.add_column("")
        for column in COLUMNS:
            table.add_column(column, justify="right")
        for name, series in self._series():
            table.add_row(name, *_shown(series))
        return table

    def format_tree(self, launch: int | None = None, *, us: bool = True) -> str:
        """Return what a call consists of, by its median, or one call's spans."""
        if launch is not None:
            return self.invocations[launch].format_tree(us=us)
        lines = [f"call {self.median:.2f} us"]
        if not self.all_zero_device:
            alone = min(self.device.median, self.median)  # a short one takes as long to be timed
            lines.append(f"├─ program {alone:.2f} us ({alone / self.median:.0%})")
            lines.append(f"└─ around it {self.median - alone:.2f} us ({1 - alone / self.median:.0%})")
        return "\n".join(lines)

    def format_mean_tree(self, *, us: bool = True) -> str:
        """Return the spans of a call, each by its average."""
        return self.mean_invocation().format_tree(us=us)

    def print_tree(self, launch: int | None = None, *, us: bool = True, file: TextIO | None = None) -> None:
        """Print what a call consists of: the program, and the rest."""
        print(self.format_tree(launch, us=us), file=sys.stdout if file is None else file)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write a picture of every run as SVG; ImportError says what to install where matplotlib is missing."""
        from tilewright.programs.plot import plot

        plot(self.name, dict(self._series()), path)

    def _series(self) -> list[tuple[str, Timings]]:
        return [("call", self), *([] if self.all_zero_device else [("program", self.device)])]

    def _both(self) -> tuple[Sequence[float], Sequence[float]]:
        return self.times, self.device.times or (0.0,) * self.samples


def _invocation(name: str, number: int, times: tuple[float, float]) -> TraceInvocation:
    """Return one call as a trace; the program lies in the middle of it, since nobody saw when it began."""
    host, device = (round(1000 * time) for time in times)
    pid, attrs = os.getpid(), {"task": name}
    spans = [TraceSpan(pid, 0, number, 0, 0, HOST, 0, host, attrs)]
    if device:
        spans.append(TraceSpan(pid, 0, number, 0, 1, DEVICE, max(host - device, 0) // 2, device, attrs))
    return TraceInvocation(pid, number, 0, spans)


def _shown(series: Timings) -> list[str]:
    times = (series.min, series.median, series.mean, series.max, series.stdev)
    return [*(f"{time:.2f}" for time in times), f"{series.spread:.1%}", str(series.samples)]
