"""Benchmarks: how long a program takes, called from Python and by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.call.backoff import hurry
from tilewright.call.binding import bind
from tilewright.call.launch import prepared
from tilewright.programs.benchmark_stats import BenchmarkStats
from tilewright.programs.metadata import entry_of
from tilewright.programs.program import CompiledProgram
from tilewright.programs.timings import Timings, timed, wall, within

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
    hurry()
    host = _microseconds(timed(lambda: compiled(*args), rounds, wall, warmup=warmup))
    device: Sequence[float] = (0.0,) * rounds
    if isinstance(compiled, CompiledProgram) and compiled.native is not None:
        alone = prepared(compiled.native, bind(entry_of(compiled.declared), compiled.directions(), args))
        elapsed = compiled.native.code.backend.elapsed
        device = within(_microseconds(timed(alone, rounds, elapsed, warmup=warmup)), host)
    return BenchmarkStats(host, Timings(device), _name(compiled), warmup)


def _microseconds(seconds: Sequence[float]) -> tuple[float, ...]:
    return tuple([1e6 * each for each in seconds])


def _name(compiled: Any) -> str:
    program = compiled.declared if isinstance(compiled, CompiledProgram) else compiled
    return getattr(program, "__name__", None) or getattr(program, "name", "function")
