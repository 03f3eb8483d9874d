"""Measuring: configurations compiled, tried and timed on a call's own arguments, of which none is changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

from tilewright.call.thread_limit import on_threads
from tilewright.collector import paused_collection
from tilewright.core.enums import ParamDirection
from tilewright.errors import DriftError, InternalError, RunOnlyError, TuningError
from tilewright.jit.calls import Call
from tilewright.jit.compiled import Compiled
from tilewright.records import entity
from tilewright.tune.choices import Choice
from tilewright.tune.config import Config
from tilewright.tune.contest import Timed, best, contest
from tilewright.tune.outcome import outcome
from tilewright.tune.protection import protected

if TYPE_CHECKING:
    from rich.status import Status

    from tilewright.programs.config import RunConfig


class Progress:
    """What is shown of one kernel's tuning."""

    def __init__(self, name: str, status: Status | None) -> None:
        self._name = name
        self._status = status

    def compiling(self, config: Config, number: int, total: int) -> None:
        """Show which configuration is compiled."""
        self._show(f"compiling {number} of {total}: {config.text}")

    def measuring(self, times: Sequence[Sequence[float]]) -> None:
        """Show the times so far."""
        rounds = max(map(len, times))
        left = sum(len(each) == rounds for each in times)
        self._show(f"measuring, round {rounds}, {left} of {len(times)} left, {1e6 * min(map(min, times)):.1f} us")

    def _show(self, text: str) -> None:
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(f"tuning {self._name}: {text}"))


@contextmanager
def shown(name: str) -> Generator[Progress]:
    """Show the tuning of a kernel inside; the line is gone afterwards."""
    if not sys.stderr.isatty():
        yield Progress(name, None)
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield Progress(name, status)


@entity
class Tried:
    """A call with one configuration."""

    call: Call
    options: RunConfig | None
    threads: int
    """How many threads it is run on, 0 for as many as the settings say."""
    compiled: Callable[[], Compiled]


Attempt = Callable[[Config], Tried]


def measured(name: str, configs: Sequence[Config], attempt: Attempt, *, is_beside: bool = False) -> Choice:
    """Return which configuration is fastest, TuningError where none can be run; they may be compiled side by side."""
    with shown(name) as progress, ThreadPoolExecutor(os.cpu_count()) as pool:
        begun = [pool.submit(copy_context().run, _made, attempt, config).result for config in configs if is_beside]
        compiled = begun or [partial(_made, attempt, config) for config in configs]
        try:
            runs, failures = _runs(configs, compiled, progress)
        finally:
            pool.shutdown(cancel_futures=True)
        if not runs:
            raise _all_failed(name, configs, failures)
        with paused_collection():
            found = contest([timed for timed, _ in runs.values()], progress.measuring)
    times = dict(zip(runs, found, strict=True))
    place = list(runs)[best(found)]
    texts = {number: f"{type(error).__name__}: {error}" for number, error in failures.items()}
    measured = outcome(configs, [times.get(number, ()) for number in range(len(configs))], texts, place)
    return Choice(measured, runs[place][1].reads)


Runs = dict[int, tuple[Timed, Compiled]]


def _made(attempt: Attempt, config: Config) -> tuple[Tried, Compiled]:
    tried = attempt(config)
    return tried, tried.compiled()


def _runs(
    configs: Sequence[Config], made: Sequence[Callable[[], tuple[Tried, Compiled]]], progress: Progress
) -> tuple[Runs, dict[int, Exception]]:
    """Return what times a run of each configuration, by its number, and why the others cannot be run."""
    runs: Runs = {}
    failures: dict[int, Exception] = {}
    for number, config in enumerate(configs):
        progress.compiling(config, number + 1, len(configs))
        try:
            tried, compiled = made[number]()
            with on_threads(tried.threads):
                runs[number] = _timed(tried.call, compiled), compiled
        except (DriftError, RunOnlyError, InternalError):
            raise
        except Exception as error:
            failures[number] = error
    return runs, failures


def _timed(call: Call, compiled: Compiled) -> Timed:
    """Return what times a run of a program on copies of what it writes; raises what a run does wrong."""
    safe = protected(call, compiled.written)
    directions = zip(compiled.parameters, compiled.program.directions(), strict=True)
    restore = safe.restored([name for name, direction in directions if direction is ParamDirection.InOut])
    compiled.run(safe.call)
    run, elapsed = compiled.prepared(safe.call), compiled.program.loaded.code.backend.elapsed

    def timed() -> float:
        restore()
        return elapsed(run)

    return timed


def _all_failed(name: str, configs: Sequence[Config], failures: dict[int, Exception]) -> Exception:
    """Return what to raise where no configuration can be run: what all of them say, or each."""
    texts = {f"{type(error).__name__}: {error}" for error in failures.values()}
    if len(texts) == 1:
        return failures[0]
    lines = [f"    {configs[number].text}: {_first_line(error)}" for number, error in failures.items()]
    return TuningError("\n".join([f"kernel `{name}`: none of {len(configs)} configurations can be run", *lines]))


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
