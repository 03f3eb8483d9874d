"""Run configurations: how a kernel is compiled and run."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from functools import cache
from sys import intern
from typing import Any, cast

from tilewright.call.written_calls import Configured
from tilewright.passes.choices import MemoryPlanner
from tilewright.passes.strategy import OptimizationStrategy, PassDumpLevel
from tilewright.programs import fields
from tilewright.programs.code_options import CodeOptions
from tilewright.programs.distributed.config import DistributedConfig
from tilewright.programs.platforms import (
    DEFAULT,
    INTERPRETER,
    NPUS,
    BackendType,
    Unsaid,
    backend_for,
    backend_of,
    checked_platform,
    target_of,
)

RULE = "rule"

OPTIONS = (
    *("platform", "target", "strategy", "checked", "distributed_config", "trace"),
    *("dump_passes", "compile_profiling", "save_kernels_dir"),
)
"""The fields that a call depends on: all that anybody looks at on its way."""


def _kept(default: Any, rule: fields.Rule) -> Any:
    """Return a field whose values a rule brings to one spelling."""
    return field(default=default, metadata={RULE: rule})


def _platform(_: str, value: Any) -> str:
    return value if isinstance(value, Unsaid) else checked_platform(value)


class _Found(list[int]):
    """The devices that a configuration has, as `dataclasses.replace` hands them on beside what it became."""


class _Devices:
    """An argument that is read where it went: in the distributed configuration."""

    def __get__(self, config: RunConfig | None, owner: type) -> Any:
        said = None if config is None else config.distributed_config
        return None if said is None else _Found(said.device_ids)


@dataclass(slots=True)  # calls read it where it lies
class RunConfig:
    """Where and how to run: every field that the PTO family's configuration has, checked when it is made.

    Fields can be assigned; what uses them looks at them then.

    Two configurations share compiled programs when their `code_options` are equal. `platform`, `target` and `strategy`
    choose the code, and `checked` has the interpreter run it and report turns that race; `dump_passes`,
    `compile_profiling` and `save_kernels_dir` have a program's folder written; `codegen_only` keeps `run` from running
    it; `rtol` and `atol` are for comparing results; `trace` is the file of a timeline. The rest speaks of an NPU: it is
    checked and carried along, and changes nothing here.
    """

    platform: str = _kept(Unsaid(DEFAULT), _platform)
    """Where programs run: by default where their tensors are."""
    target: str | None = field(default=None, kw_only=True)
    """What code is made for where that is not this machine, as in `sm_90` on platform `cuda`."""
    device_id: int = _kept(0, fields.natural)
    rtol: float = _kept(1e-5, fields.tolerance)
    atol: float = _kept(1e-5, fields.tolerance)
    strategy: OptimizationStrategy = _kept(OptimizationStrategy.Default, fields.one_of(OptimizationStrategy))
    backend_type: BackendType | None = _kept(None, fields.optional(fields.one_of(BackendType)))
    """Which NPU the platform's name means; it is filled in."""
    checked: bool = _kept(False, fields.flag)
    """Whether the interpreter runs the program, on whatever platform, and reports what it otherwise would not look for:
    for small inputs."""
    dump_passes: bool | PassDumpLevel = _kept(False, fields.either(PassDumpLevel))
    save_kernels: bool = _kept(False, fields.flag)
    save_kernels_dir: str | os.PathLike[str] | None = _kept(None, fields.optional(fields.path))
    codegen_only: bool = _kept(False, fields.flag)
    enable_chip_swimlane: int = _kept(0, fields.level(4, whole=4))
    enable_dump_args: int = _kept(0, fields.level(2))
    enable_pmu: int = _kept(0, fields.level())
    enable_dep_gen: bool = _kept(False, fields.flag)
    enable_scope_stats: bool = _kept(False, fields.flag)
    compile_profiling: bool = _kept(False, fields.flag)
    diagnostic_phase: Any = None
    disabled_diagnostics: Any = None
    golden_data_dir: str | os.PathLike[str] | None = _kept(None, fields.optional(fields.path))
    aicpu_thread_num: int | None = _kept(None, fields.optional(fields.positive))
    ring_task_window: int | Sequence[int] | None = _kept(None, fields.optional(fields.ring(4)))
    ring_heap: int | Sequence[int] | None = _kept(None, fields.optional(fields.ring(1024)))
    ring_dep_pool: int | Sequence[int] | None = _kept(None, fields.optional(fields.ring(4, 2**31 - 1)))
    distributed_config: DistributedConfig | None = None
    """On which devices a host function runs, a rank on each."""
    device_ids: InitVar[Sequence[int] | None] = cast("None", _Devices())  # noqa: RUF009
    """The devices of a distributed configuration that says nothing else, which it becomes."""
    analyze_auto_scopes_for_deps: bool = _kept(False, fields.flag)
    memory_planner: MemoryPlanner | None = _kept(None, fields.optional(fields.one_of(MemoryPlanner)))
    dump_ptoas_passes: bool = _kept(False, fields.flag)
    trace: str | os.PathLike[str] | None = _kept(None, fields.optional(fields.place))
    """The file that calls are written to as a timeline, each chunk on the thread that ran it; Perfetto opens it."""
    enable_l2_swimlane: InitVar[int | None] = None
    """The old name of `enable_chip_swimlane`."""

    def __post_init__(self, device_ids: Sequence[int] | None, enable_l2_swimlane: int | None) -> None:
        if enable_l2_swimlane is not None:
            self._take_old_name(enable_l2_swimlane)
        for name, default, rule in _rules():
            if (value := getattr(self, name)) is not default:
                setattr(self, name, rule(name, value))
        if device_ids is not None and not isinstance(device_ids, _Found):
            if self.distributed_config is not None:
                raise ValueError("device_ids belongs to distributed_config: give one of them")
            self.distributed_config = DistributedConfig(device_ids)
        if self.checked:
            self.platform, self.target = INTERPRETER, None
        if self.target is not None:
            backend_for(self.platform).named(self.target)
            self.target = intern(self.target.strip().lower())  # one object for each, which calls are told apart by
        if self.platform in NPUS or self.backend_type is None:
            self.backend_type = backend_of(self.platform)
        if self.any_dfx_enabled() or self.save_kernels_dir is not None:
            self.save_kernels = True

    def _take_old_name(self, given: int) -> None:
        if self.enable_chip_swimlane:
            raise ValueError("enable_chip_swimlane and enable_l2_swimlane are one field: give the former alone")
        message = "RunConfig(enable_l2_swimlane=...) is now called enable_chip_swimlane"
        warnings.warn(message, DeprecationWarning, stacklevel=4)
        self.enable_chip_swimlane = given

    @property
    def runs_on(self) -> str:
        """What really runs the program: `cpu`, `interpret` or `cuda`."""
        return target_of(self.platform)

    @property
    def code_options(self) -> CodeOptions:
        """What of this the code depends on: equal options, equal code."""
        return self.runs_on, self.strategy.name, self.checked, self.target

    @property
    def told(self) -> Configured | None:
        """What calls that are given this are told apart by; None where each of them has to be looked at by Python."""
        is_placed = self.trace is None or os.path.isabs(self.trace)
        return Configured.of(self, OPTIONS) if is_placed and not self.writes_folder else None

    @property
    def writes_folder(self) -> bool:
        """Whether a program's folder is to be written, without being asked for."""
        dumps = self.dump_passes not in (False, PassDumpLevel.NONE)
        return dumps or self.compile_profiling or self.save_kernels_dir is not None

    def compile_kwargs(self) -> dict[str, Any]:
        """Return what of this is for `ir.compile`, as its keyword arguments."""
        kwargs = {"platform": self.platform, "strategy": self.strategy, "dump_passes": self.dump_passes}
        kwargs |= {"backend_type": self.backend_type, "profiling": self.compile_profiling}
        kwargs |= {"checked": True} if self.checked else {}
        kwargs |= {} if self.target is None else {"target": self.target}
        kwargs |= {} if self.distributed_config is None else {"distributed_config": self.distributed_config}
        return kwargs if self.save_kernels_dir is None else {**kwargs, "output_dir": self.save_kernels_dir}

    def any_dfx_enabled(self) -> bool:
        """Return whether any of the NPU's diagnostics is asked for."""
        counted = (self.enable_chip_swimlane, self.enable_dump_args, self.enable_pmu)
        return any(counted) or self.enable_dep_gen or self.enable_scope_stats


@cache
def _rules() -> list[tuple[str, object, fields.Rule]]:
    """Return every field that has a rule, with its default, which is spelled as the rule would."""
    every = dataclasses.fields(RunConfig)
    return [(each.name, each.default, each.metadata[RULE]) for each in every if RULE in each.metadata]
