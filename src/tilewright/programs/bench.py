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
    host = _timed(lambda: compiled(*args), rounds, warmup, _wall)
    device: Sequence[float] = (0.0,) * rounds
    if isinstance(compiled, CompiledProgram) and compiled.native is not None:
        alone = prepared(compiled.native, bind(entry_of(compiled.declared), compiled.directions(), args))
        device = _timed(alone, rounds, warmup, compiled.native.code.backend.elapsed)
    return BenchmarkStats(host, Timings(device), _name(compiled), warmup)


def _timed(
    run: Callable[[], Any], rounds: int, warmup: int, elapsed: Callable[[Callable[[], Any]], float]
) -> tuple[float, ...]:
    """Return how long each of `rounds` runs took by some clock, in microseconds."""
    for _ in range(warmup):
        run()
    with _without_collection():
        return tuple([1e6 * elapsed(run) for _ in range(rounds)])


def _wall(run: Callable[[], Any]) -> float:
    """Return the seconds until a run returns."""
    start = perf_counter_ns()
    run()
    return (perf_counter_ns() - start) / 1e9


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
