"""Benchmarks: how long a program takes, called from Python and by itself."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tilewright.call.binding import bind
from tilewright.call.launch import prepared
from tilewright.programs.benchmark_stats import BenchmarkStats
from tilewright.programs.metadata import entry_of
from tilewright.programs.program import CompiledProgram
from tilewright.programs.timings import Timings

if TYPE_CHECKING:
    from tilewright.programs.config import RunConfig


def benchmark(
    compiled: Callable[..., Any],
    args: Sequence[Any],
    rounds: int = 100,
    warmup: int = 3,
    *,
    platform: str | None = None,
    device_id: int | None = None,
    config: RunConfig | None = None,
    persistent: bool = False,
    reset_persistent_windows: object = None,
) -> BenchmarkStats:
    """Return how long a compiled program, a kernel or any function takes on `args`, over `rounds` calls.

    The arguments are used again each time, so what a call changes in place goes on changing. Everything from `platform`
    on is for scripts of the PTO family: where a program runs was settled when it was compiled, and it stays loaded.
    """
    if rounds < 1 or warmup < 0:
        raise ValueError(f"benchmark needs one round or more and no negative warmup, got {rounds} and {warmup}")
    if config is not None and (platform is not None or device_id is not None):
        raise ValueError("benchmark takes a config, or a platform and a device_id, which a config has")
    host = _timed(lambda: compiled(*args), rounds, warmup)
    alone = _alone(compiled, args)
    device = _timed(alone, rounds, warmup) if alone is not None else (0.0,) * rounds
    return BenchmarkStats(host, Timings(device), _name(compiled), warmup)


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


def _name(compiled: Any) -> str:
    program = compiled.declared if isinstance(compiled, CompiledProgram) else compiled
    return getattr(program, "__name__", None) or getattr(program, "name", "function")
