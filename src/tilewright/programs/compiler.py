"""Compiling: a program through the passes to something that runs."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from tilewright import settings
from tilewright.core.program import Function, Program
from tilewright.frontend.programs import as_program
from tilewright.frontend.tracebacks import brief
from tilewright.passes.choices import MemoryPlanner, RuntimeKind
from tilewright.passes.context import PassContext, VerificationLevel
from tilewright.passes.strategy import OptimizationStrategy, PassDumpLevel
from tilewright.programs import fields
from tilewright.programs.compilation import How, compiled_alone
from tilewright.programs.platforms import (
    INTERPRETER,
    BackendType,
)
from tilewright.programs.program import CompiledProgram

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
    how = How.of(
        output_dir, strategy, dump_passes, backend_type, platform, checked, profiling, verification_level, runtime
    )
    source = as_program(program)
    if source.hosts:
        return _distributed(source, how, target, distributed_config)
    return _stepped(source) if settings.debug() and not _ON_RANKS.get() else compiled_alone(source, how, target)


def _distributed(source: Program, how: How, target: str | None, config: Any) -> CompiledProgram:
    """Return a program of many ranks, each function that is dispatched a program of its own."""
    from tilewright.programs.distributed.program import compile_distributed

    alone = replace(how, output_dir=None)

    def compiled(chip: Program, data: object) -> CompiledProgram:
        return compiled_alone(chip, alone, target)

    return compile_distributed(source, config, how.platform, compiled, how.directory(source.name))


def _stepped(source: Program) -> CompiledProgram:
    """Return a program that runs line by line, whatever platform it is for."""
    from tilewright.programs.debugging import in_steps

    return CompiledProgram(source, INTERPRETER, in_steps(source))


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
