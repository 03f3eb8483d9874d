"""Benchmarks: how long a program takes, called from Python and by itself."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tilewright.call.binding import bind
from tilewright.call.launch import prepared
from tilewright.programs.metadata import entry_of
from tilewright.programs.program import CompiledProgram
from tilewright.programs.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.table import Table

    from tilewright.programs.config import RunConfig

COLUMNS = ("min", "median", "mean", "max", "stdev", "spread", "samples")


@dataclass(frozen=True)
class BenchmarkStats(Timings):
    """How long calls took, in microseconds; `device` is the program alone, on arguments that have been checked.

    Timing either adds about 0.2 us to every run. `device` is empty where there is no machine code of its own to time,
    as on the interpreter.
    """

    device: Timings = Timings(())
    name: str = "program"

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

    def print_tree(self) -> None:
        """Print what a call consists of: the program, and the rest."""
        print(f"call {self.median:.2f} us")
        if not self.all_zero_device:
            alone = min(self.device.median, self.median)  # a short one takes as long to be timed
            print(f"├─ program {alone:.2f} us ({alone / self.median:.0%})")
            print(f"└─ around it {self.median - alone:.2f} us ({1 - alone / self.median:.0%})")

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write a picture of every run as SVG; ImportError says what to install where matplotlib is missing."""
        from tilewright.programs.plot import plot

        plot(self.name, dict(self._series()), path)

    def _series(self) -> list[tuple[str, Timings]]:
        return [("call", self), *([] if self.all_zero_device else [("program", self.device)])]


def benchmark(
    compiled: Callable[..., Any],
    args: Sequence[Any],
    rounds: int = 100,
    warmup: int = 3,
    *,
    platform: str | None = None,
    device_id: int | None = None,
    config: RunConfig | None = None,
) -> BenchmarkStats:
    """Return how long a compiled program, a kernel or any function takes on `args`, over `rounds` calls.

    The arguments are used again each time, so what a call changes in place goes on changing. `platform`, `device_id`
    and `config` are for scripts of the PTO family: where a program runs was settled when it was compiled.
    """
    if rounds < 1 or warmup < 0:
        raise ValueError(f"benchmark needs one round or more and no negative warmup, got {rounds} and {warmup}")
    host = _timed(lambda: compiled(*args), rounds, warmup)
    alone = _alone(compiled, args)
    device = _timed(alone, rounds, warmup) if alone is not None else ()
    return BenchmarkStats(host, Timings(device), _name(compiled))


def _alone(compiled: Callable[..., Any], args: Sequence[Any]) -> Callable[[], Any] | None:
    """Return a run of the machine code on arguments that have been looked at already, None where there is none."""
    if not isinstance(compiled, CompiledProgram) or compiled.native is None:
        return None
    entry, native = entry_of(compiled.declared), compiled.native
    return prepared(native, bind(entry, compiled.directions(), args))


def _timed(run: Callable[[], Any], rounds: int, warmup: int) -> tuple[float, ...]:
    """Return the wall times of `rounds` runs in microseconds."""
    for _ in range(warmup):
        run()
    times: list[int] = []
    with _without_collection():
        for _ in range(rounds):
            start = perf_counter_ns()
            run()
            times.append(perf_counter_ns() - start)
    return tuple(time / 1000 for time in times)


@contextmanager
def _without_collection() -> Generator[None]:
    """Keep the garbage collector out of the measurement, as `timeit` does."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _shown(series: Timings) -> list[str]:
    times = (series.min, series.median, series.mean, series.max, series.stdev)
    return [*(f"{time:.2f}" for time in times), f"{series.spread:.1%}", str(series.samples)]


def _name(compiled: Any) -> str:
    program = compiled.declared if isinstance(compiled, CompiledProgram) else compiled
    return getattr(program, "__name__", None) or getattr(program, "name", "function")
