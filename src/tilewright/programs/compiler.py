"""Compiling: a program through the passes to something that runs."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright import settings
from tilewright.collector import paused_collection
from tilewright.core.program import Function, Program
from tilewright.core.stmt import ReturnStmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements
from tilewright.errors import ReturnMismatchError, UncallableError
from tilewright.frontend.programs import as_program
from tilewright.frontend.tracebacks import brief
from tilewright.passes.choices import MemoryPlanner, RuntimeKind
from tilewright.passes.context import PassContext, VerificationLevel
from tilewright.passes.manager import PassManager
from tilewright.passes.overwritten import overwritten_outputs
from tilewright.passes.strategy import OptimizationStrategy, PassDumpLevel
from tilewright.programs import fields
from tilewright.programs.chip_program import checked_runtime
from tilewright.programs.folder import free_place
from tilewright.programs.logs import LogLevel, note
from tilewright.programs.npus import meant
from tilewright.programs.platforms import (
    DEFAULT,
    INTERPRETER,
    NPUS,
    BackendType,
    backend_for,
    backend_of,
    checked_platform,
)
from tilewright.programs.profile import Profile, StageRecord
from tilewright.programs.profiler import get_active_profiler
from tilewright.programs.program import CompiledProgram
from tilewright.programs.stages import Remade
from tilewright.records import record

RULES: dict[str, fields.Rule] = {
    "skip_ptoas": fields.flag,
    "memory_planner": fields.optional(fields.one_of(MemoryPlanner)),
    "enable_pypto_l0c_double_buffer": fields.optional(fields.flag),
    "analyze_auto_scopes_for_deps": fields.flag,
    "emit_source_loc": fields.optional(fields.flag),
    "dump_ptoas_passes": fields.flag,
    "runtime": fields.optional(fields.one_of(RuntimeKind)),
}
"""What the values of choices may be; of the others only somebody with an NPU can tell."""

CONTEXT = (
    *("verification_level", "diagnostic_phase", "disabled_diagnostics"),
    *("memory_planner", "enable_pypto_l0c_double_buffer", "runtime"),
)
"""What a `PassContext` that is active has decided already."""


_ON_RANKS: ContextVar[bool] = ContextVar("_ON_RANKS", default=False)


@contextmanager
def on_ranks() -> Generator[None]:
    """Compile what a host function dispatches, which nobody steps through whatever TILEWRIGHT_DEBUG says."""
    token = _ON_RANKS.set(True)
    try:
        yield
    finally:
        _ON_RANKS.reset(token)


def check_choices(**choices: Any) -> None:
    """Raise ValueError for a choice that nobody could make, by its name."""
    for name, value in choices.items():
        if name in RULES:
            RULES[name](name, value)


def check_context(**choices: Any) -> None:
    """Raise RuntimeError for a choice that the active `PassContext` has taken."""
    for name in CONTEXT:
        if choices.get(name) is not None:
            raise RuntimeError(f"compile: {name}= while a PassContext is active: leave it out, or say it there")


@brief
def compile(
    program: Program | Function,
    output_dir: str | os.PathLike[str] | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool | PassDumpLevel = False,
    backend_type: BackendType | None = None,
    *,
    platform: str | None = None,
    target: str | None = None,
    checked: bool = False,
    profiling: bool = False,
    verification_level: VerificationLevel | None = None,
    skip_ptoas: bool = False,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    memory_planner: MemoryPlanner | None = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
    distributed_config: Any = None,
    analyze_auto_scopes_for_deps: bool = False,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: Any = None,
) -> CompiledProgram:
    """Return `program` ready to run, its folder written where one is given.

    With `dump_passes` each pass's result is written as soon as there is one, so that a pass that fails leaves its
    input to be read; without an `output_dir` the folder is one of its own below the build directory. `target` names
    what to make code for where that is not this machine, as in `sm_90` on platform `cuda`. `profiling` writes the
    folder too, with the time of every stage. The interpreter runs a `checked` program, as it was written:
    turns that race are a RaceError. `verification_level` says what is checked between passes. `backend_type`,
    else what `set_backend_type` was told, and everything from `skip_ptoas` on is about NPUs: looked at, and without
    effect here.
    """
    check_choices(
        skip_ptoas=skip_ptoas, memory_planner=memory_planner, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps,
        enable_pypto_l0c_double_buffer=enable_pypto_l0c_double_buffer, emit_source_loc=emit_source_loc,
        dump_ptoas_passes=dump_ptoas_passes, runtime=runtime,
    )  # fmt: skip
    if PassContext.active() is not None:
        check_context(
            verification_level=verification_level, diagnostic_phase=diagnostic_phase, memory_planner=memory_planner,
            disabled_diagnostics=disabled_diagnostics, enable_pypto_l0c_double_buffer=enable_pypto_l0c_double_buffer,
            runtime=runtime,
        )  # fmt: skip
    how = _How.of(
        output_dir, strategy, dump_passes, backend_type, platform, checked, profiling, verification_level, runtime
    )
    source = as_program(program)
    if source.hosts:
        return _distributed(source, how, target, distributed_config)
    return _stepped(source) if settings.debug() and not _ON_RANKS.get() else _compiled(source, how, target)


def _distributed(source: Program, how: _How, target: str | None, config: Any) -> CompiledProgram:
    """Return a program of many ranks, each function that is dispatched a program of its own."""
    from tilewright.programs.distributed.program import compile_distributed

    alone = replace(how, output_dir=None)

    def compiled(chip: Program) -> CompiledProgram:
        return _compiled(chip, alone, target)

    return compile_distributed(source, config, how.platform, compiled, how.directory(source.name))


def _stepped(source: Program) -> CompiledProgram:
    """Return a program that runs line by line, whatever platform it is for."""
    from tilewright.programs.debugging import in_steps

    return CompiledProgram(source, INTERPRETER, in_steps(source))


@record
class _How:
    """How a program is compiled, each choice by its one spelling."""

    output_dir: str | None
    strategy: OptimizationStrategy
    dump: bool | PassDumpLevel
    platform: str
    backend: BackendType
    is_checked: bool
    is_profiled: bool
    verification: VerificationLevel | None
    runtime: str

    @staticmethod
    def of(
        output_dir: Any, strategy: Any, dump: Any, backend: Any, platform: Any, checked: Any, profiling: Any,
        verification: Any, runtime: Any,
    ) -> _How:  # fmt: skip
        """Return the choices of a call; ValueError names one that cannot be."""
        is_checked = fields.flag("checked", checked)
        name = INTERPRETER if is_checked else checked_platform(DEFAULT if platform is None else platform)
        chosen = fields.optional(fields.one_of(BackendType))("backend_type", backend) or meant()
        return _How(
            fields.optional(fields.path)("output_dir", output_dir),
            fields.one_of(OptimizationStrategy)("strategy", strategy),
            fields.either(PassDumpLevel)("dump_passes", dump),
            name,
            chosen if chosen is not None and name not in NPUS else backend_of(name),
            is_checked,
            fields.flag("profiling", profiling),
            fields.optional(fields.one_of(VerificationLevel))("verification_level", verification),
            checked_runtime(PassContext.current().runtime if runtime is None else runtime),
        )

    def directory(self, name: str) -> Path | None:
        """Return where a program's folder is written at once, None where it can wait."""
        if self.output_dir is not None:
            return Path(self.output_dir)
        return free_place(name) if self.is_profiled or self.dump not in (False, PassDumpLevel.NONE) else None


@paused_collection()
def _compiled(source: Program, how: _How, target: str | None) -> CompiledProgram:
    backend = backend_for(how.platform)
    named = None if target is None else backend.named(target)
    if objection := backend.objection():
        raise ValueError(f"{objection}: pass platform={INTERPRETER!r} to run programs here")
    _check_written_here(source)
    _check_returned(source)
    backend.begin()
    profile, directory = Profile(), how.directory(source.name)
    lowered = _lowered(source, how, directory, profile)
    names = [entry.name for entry in source.entries]
    options = backend.options(is_checked=how.is_checked)
    seen = source if how.is_checked else lowered  # turns that race are reported by the names that people gave
    code = backend.compile(seen, names, named, options, profile.timed)
    code = replace(code, filled={name: overwritten_outputs(lowered, lowered[name]) for name in names})
    with profile.timed("load"):
        entries = backend.load(source, code)
    compiled = CompiledProgram(
        source,
        how.platform,
        entries,
        Remade(backend, lambda: source, how.strategy, lambda: code, concise=how.dump is PassDumpLevel.CONCISE),
        output_dir=directory,
        profile=profile,
        backend_type=how.backend,
        runtime=how.runtime,
    )
    if directory is not None:
        compiled.write()
    _reported(source.name, profile)
    return compiled


def _check_written_here(source: Program) -> None:
    """Raise UncallableError for a function whose code another language holds."""
    for function in source.function_list:
        if function.external_source:
            message = f"`{function.name}` is written in {function.external_source}, which cannot be compiled here"
            raise UncallableError(message, spans=[function.span], help="write it as a function of the language")


def _reported(name: str, profile: Profile) -> None:
    """Tell the active profiler, and the log, how long a program took to compile."""
    records = profile.records
    whole = StageRecord(name, records[0].start, records[-1].end, tuple(records))
    profiler = get_active_profiler()
    if profiler is not None:
        profiler.add_stage_record(whole)
    note("compiler", LogLevel.TIMING, f"compiled {name} in {1e3 * whole.duration:.1f} ms")


def _check_returned(source: Program) -> None:
    """Raise ReturnMismatchError where an entry gives its caller a tile: those end with the kernel they are part of."""
    for entry in source.entries:
        found = [type_ for type_ in entry.return_types if isinstance(type_, TileType)]
        if found:
            spans = [s.span for s in statements(entry.body) if isinstance(s, ReturnStmt)] or [entry.span]
            error = ReturnMismatchError(
                f"tensors and numbers can be returned to Python, got {found[0]}",
                spans=spans[:1],
                help="pl.store it into a parameter annotated pl.Out[pl.Tensor], and return that",
            )
            error.function = entry.name
            raise error


def _lowered(source: Program, how: _How, directory: Path | None, profile: Profile) -> Program:
    """Return a program after every pass, each of them timed."""
    context = PassContext.current()
    level = context.verification_level if how.verification is None else how.verification
    with replace(context, instruments=[*context.instruments, profile], verification_level=level):
        return PassManager.get_strategy(how.strategy).run_passes(source, dump_ir=how.dump, output_dir=directory)


def compile_program(
    program: Program | Function,
    work_dir: str | os.PathLike[str],
    *,
    strategy: OptimizationStrategy,
    backend_type: BackendType,
    dump_passes: bool | PassDumpLevel = False,
    dump_ptoas_passes: bool = False,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    profiling: bool = False,
    analyze_auto_scopes_for_deps: bool = False,
    memory_planner: MemoryPlanner | None = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
) -> None:
    """Compile a program into a folder, for `execute_compiled` and `CompiledProgram.from_dir` to run; see `compile`."""
    compile(
        program,
        work_dir,
        strategy,
        dump_passes,
        backend_type,
        profiling=profiling,
        dump_ptoas_passes=dump_ptoas_passes,
        diagnostic_phase=diagnostic_phase,
        disabled_diagnostics=disabled_diagnostics,
        analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps,
        memory_planner=memory_planner,
        enable_pypto_l0c_double_buffer=enable_pypto_l0c_double_buffer,
    )
