"""Compiling: a program through the passes to something that runs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.collector import paused_collection
from tilewright.core.program import Function, Program
from tilewright.core.stmt import ReturnStmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements
from tilewright.errors import ReturnMismatchError, brief
from tilewright.frontend.programs import as_program
from tilewright.passes.context import PassContext, VerificationLevel
from tilewright.passes.manager import PassManager
from tilewright.passes.strategy import OptimizationStrategy, PassDumpLevel
from tilewright.programs import fields
from tilewright.programs.folder import free_place
from tilewright.programs.lowered_stages import Remade
from tilewright.programs.planning import MemoryPlanner, check_choices, check_context
from tilewright.programs.platforms import (
    DEFAULT,
    INTERPRETER,
    NPUS,
    BackendType,
    backend_for,
    backend_of,
    checked_platform,
)
from tilewright.programs.profile import Profile
from tilewright.programs.program import CompiledProgram
from tilewright.records import record


@brief
def compile(
    program: Program | Function,
    output_dir: str | os.PathLike[str] | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool | PassDumpLevel = False,
    backend_type: BackendType | None = None,
    *,
    platform: str | None = None,
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
    input to be read; without an `output_dir` the folder is one of its own below the build directory. `profiling`
    writes the folder too, with the time of every stage. The interpreter runs a `checked` program, as it was written:
    turns that race are a RaceError. `verification_level` says what is checked between passes. `backend_type`
    and everything from `skip_ptoas` on is about NPUs: looked at, and without effect here.
    """
    check_choices(
        skip_ptoas=skip_ptoas, memory_planner=memory_planner, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps,
        enable_pypto_l0c_double_buffer=enable_pypto_l0c_double_buffer, emit_source_loc=emit_source_loc,
        dump_ptoas_passes=dump_ptoas_passes,
    )  # fmt: skip
    if PassContext.active() is not None:
        check_context(
            verification_level=verification_level, diagnostic_phase=diagnostic_phase, memory_planner=memory_planner,
            disabled_diagnostics=disabled_diagnostics, enable_pypto_l0c_double_buffer=enable_pypto_l0c_double_buffer,
        )  # fmt: skip
    how = _How.of(output_dir, strategy, dump_passes, backend_type, platform, checked, profiling, verification_level)
    return _compiled(as_program(program), how)


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

    @staticmethod
    def of(
        output_dir: Any, strategy: Any, dump: Any, backend: Any, platform: Any, checked: Any, profiling: Any,
        verification: Any,
    ) -> _How:  # fmt: skip
        """Return the choices of a call; ValueError names one that cannot be."""
        is_checked = fields.flag("checked", checked)
        name = INTERPRETER if is_checked else checked_platform(DEFAULT if platform is None else platform)
        chosen = fields.optional(fields.one_of(BackendType))("backend_type", backend)
        return _How(
            fields.optional(fields.path)("output_dir", output_dir),
            fields.one_of(OptimizationStrategy)("strategy", strategy),
            fields.either(PassDumpLevel)("dump_passes", dump),
            name,
            chosen if chosen is not None and name not in NPUS else backend_of(name),
            is_checked,
            fields.flag("profiling", profiling),
            fields.optional(fields.one_of(VerificationLevel))("verification_level", verification),
        )

    def directory(self, name: str) -> Path | None:
        """Return where a program's folder is written at once, None where it can wait."""
        if self.output_dir is not None:
            return Path(self.output_dir)
        return free_place(name) if self.is_profiled or self.dump not in (False, PassDumpLevel.NONE) else None


@paused_collection()
def _compiled(source: Program, how: _How) -> CompiledProgram:
    backend = backend_for(how.platform)
    if objection := backend.objection():
        raise ValueError(f"{objection}: pass platform={INTERPRETER!r} to run programs here")
    _check_returned(source)
    profile, directory = Profile(), how.directory(source.name)
    lowered = _lowered(source, how, directory, profile)
    names = [entry.name for entry in source.entries]
    options = backend.options(is_checked=how.is_checked)
    seen = source if how.is_checked else lowered  # turns that race are reported by the names that people gave
    code = backend.compile(seen, names, options=options, timed=profile.timed)
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
    )
    if directory is not None:
        compiled.write()
    return compiled


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
