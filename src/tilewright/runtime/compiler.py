"""Compiling: a program through the passes to something that runs."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from platform import machine

from tilewright.backends.cpu.native import compile_native
from tilewright.core.program import Function, Program
from tilewright.errors import brief
from tilewright.frontend.programs import as_program
from tilewright.interpret.machine import Machine
from tilewright.passes.context import PassContext
from tilewright.passes.manager import PassManager
from tilewright.passes.strategy import OptimizationStrategy, PassDumpLevel
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.folder import free_place
from tilewright.runtime.platforms import DEFAULT, INTERPRETER, checked_platform
from tilewright.runtime.profile import Profile
from tilewright.runtime.program import CompiledProgram
from tilewright.runtime.remade import Remade


@brief
def compile(
    program: Program | Function,
    output_dir: str | os.PathLike[str] | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool | PassDumpLevel = False,
    platform: str = DEFAULT,
) -> CompiledProgram:
    """Return `program` ready to run, its folder written where one is given.

    With `dump_passes` each pass's result is written as soon as there is one, so that a pass that fails leaves its
    input to be read; without an `output_dir` the folder is one of its own below the build directory.
    """
    platform = checked_platform(platform)
    if platform != INTERPRETER and (sys.platform, machine()) != ("linux", "x86_64"):
        help = f"pass platform={INTERPRETER!r} to run programs here"
        raise ValueError(f"native code runs on Linux and x86-64, not on {sys.platform} and {machine()}: {help}")
    source, profile = as_program(program), Profile()
    directory = _directory(source.name, output_dir, dump_passes)
    lowered = _lowered(source, strategy, dump_passes, directory, profile)
    artifact = None if platform == INTERPRETER else _artifact(source, lowered, profile)
    with profile.timed("load"):
        native = artifact.load() if artifact is not None else None
    compiled = CompiledProgram(
        source,
        platform,
        native.run if native is not None else Machine(lowered).run,
        _stages(source, strategy, artifact, concise=dump_passes is PassDumpLevel.CONCISE),
        artifact,
        native,
        output_dir=directory,
        profile=profile,
    )
    if directory is not None:
        compiled.write()
    return compiled


def _directory(name: str, output_dir: str | os.PathLike[str] | None, dump: bool | PassDumpLevel) -> Path | None:
    if output_dir is not None:
        return Path(output_dir)
    return free_place(name) if dump not in (False, PassDumpLevel.NONE) else None


def _lowered(
    source: Program,
    strategy: OptimizationStrategy,
    dump: bool | PassDumpLevel,
    directory: Path | None,
    profile: Profile,
) -> Program:
    """Return a program after every pass, each of them timed."""
    context = PassContext.current()
    with replace(context, instruments=[*context.instruments, profile]):
        return PassManager.get_strategy(strategy).run_passes(source, dump_ir=dump, output_dir=directory)


def _artifact(source: Program, lowered: Program, profile: Profile) -> Artifact:
    with profile.timed("native code"):
        return Artifact(source, compile_native(lowered, entries=[entry.name for entry in source.entries]))


def _stages(source: Program, strategy: OptimizationStrategy, artifact: Artifact | None, *, concise: bool) -> Remade:
    if artifact is None:
        return Remade(lambda: source, strategy, is_native=False, concise=concise)
    return Remade(lambda: source, strategy, lambda: artifact.code, concise=concise)
