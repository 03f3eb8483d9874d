"""Compilation: one program of one device through the passes to something that runs, and how."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.collector import paused_collection
from tilewright.core.program import Program
from tilewright.core.stmt import ReturnStmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements
from tilewright.errors import ReturnMismatchError, UncallableError
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


@record
class How:
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
        output_dir: Any = None, strategy: Any = OptimizationStrategy.Default, dump: Any = False, backend: Any = None,
        platform: Any = None, checked: Any = False, profiling: Any = False, verification: Any = None,
        runtime: Any = None,
    ) -> How:  # fmt: skip
        """Return the choices of a call; ValueError names one that cannot be."""
        is_checked = fields.flag("checked", checked)
        name = INTERPRETER if is_checked else checked_platform(DEFAULT if platform is None else platform)
        chosen = fields.optional(fields.one_of(BackendType))("backend_type", backend) or meant()
        return How(
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
def compiled_alone(source: Program, how: How, target: str | None) -> CompiledProgram:
    """Return a program without host functions ready to run, its folder written where one is given."""
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


def _lowered(source: Program, how: How, directory: Path | None, profile: Profile) -> Program:
    """Return a program after every pass, each of them timed."""
    context = PassContext.current()
    level = context.verification_level if how.verification is None else how.verification
    with replace(context, instruments=[*context.instruments, profile], verification_level=level):
        return PassManager.get_strategy(how.strategy).run_passes(source, dump_ir=how.dump, output_dir=directory)
