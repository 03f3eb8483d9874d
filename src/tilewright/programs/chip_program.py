"""Chip programs: a compiled program as the PTO family's runtime hands it to a chip, and what goes there with a call."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from tilewright import settings
from tilewright.backends.interface import Entries
from tilewright.call.binding import Bound
from tilewright.call.launch import Runner, Staged, runner_of
from tilewright.call.ranges import named
from tilewright.forks import computed_once
from tilewright.passes.choices import RuntimeKind
from tilewright.programs import fields
from tilewright.programs.entry_points import EntryPoints
from tilewright.records import entity, record

if TYPE_CHECKING:
    from tilewright.programs.config import RunConfig


class Dispatched(Protocol):
    """What an executor looks at of a program that is about to run."""

    loaded: Entries
    platform: str
    runtime_name: str


class Executor(Protocol):
    """Notes the programs that run."""

    def dispatched(self, compiled: Dispatched) -> None:
        """Note that a program is about to run."""
        ...


CURRENT: ContextVar[Executor | None] = ContextVar("executor", default=None)
"""The worker that programs run on by themselves, inside `with ChipWorker(...)`."""


DEFAULT_RUNTIME = RuntimeKind.TENSORMAP_AND_RINGBUFFER.value


def checked_runtime(runtime: object) -> str:
    """Return a runtime's name; ValueError lists the known ones."""
    return fields.one_of(RuntimeKind)("runtime", runtime).value


@entity
class ChipCallable:
    """A program as a worker calls it: its code, and the name of its entry where there is one."""

    code: Entries
    entry: str | None


@record
class OrchArgs:
    """The arguments of one call as the words that an entry takes."""

    words: Sequence[int]
    staged: Staged
    """What they are the words of, and what keeps it."""


@record
class CallConfig:
    """What a configuration says about one call rather than about code."""

    device_id: int
    aicpu_thread_num: int | None
    enable_chip_swimlane: int
    enable_dump_args: int
    enable_pmu: int
    enable_dep_gen: bool
    enable_scope_stats: bool


class ChipProgram(EntryPoints):
    """What a worker is given of a program."""

    loaded: Entries
    platform: str
    runtime_name: str = DEFAULT_RUNTIME
    """The runtime that it was compiled for."""

    def run_bound(self, bound: Bound) -> tuple[Any, ...]:
        """Run an entry on arguments that are bound, told to the worker that is current."""
        worker = CURRENT.get()
        if worker is not None:
            worker.dispatched(self)
        if not settings.ranges():
            return self._runner(bound)
        with named(bound.entry.name):
            return self._runner(bound)

    @computed_once
    def _runner(self) -> Runner:
        return runner_of(self.loaded)

    @computed_once
    def chip_callable(self) -> ChipCallable:
        """The program as workers call it: the same object each time."""
        names = self.entry_names
        return ChipCallable(self.loaded, names[0] if len(names) == 1 else None)

    @property
    def runtime_config(self) -> dict[str, Any]:
        """The runtime it was compiled for, and on how many threads it runs now."""
        return {"runtime": self.runtime_name, "aicpu_thread_num": settings.num_threads(), "orch_thread_num": 1}

    def build_orch_args(self, *args: Any, worker: object = None) -> tuple[OrchArgs, list[Any], bool]:
        """Return a call's arguments as words and as the call has them, outputs made, and whether it returns those.

        TypeError without a worker to make the call on, and for arguments that the call itself refuses.
        """
        if worker is None:
            raise TypeError("build_orch_args needs the worker that the call is for: pass worker=")
        bound = self.entry.bound(args, {})
        staged = Staged.of(bound)
        return OrchArgs(staged.words, staged), list(bound.given), len(args) < len(self.param_names)

    def build_call_config(self, config: RunConfig) -> CallConfig:
        """Return what of a configuration goes with a call."""
        return CallConfig(
            config.device_id,
            config.aicpu_thread_num,
            config.enable_chip_swimlane,
            config.enable_dump_args,
            config.enable_pmu,
            config.enable_dep_gen,
            config.enable_scope_stats,
        )
