"""Compiling: a program through the passes to something that runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from platform import machine
from typing import Any

from tilewright.backends.cpu.assemble import assembly
from tilewright.backends.cpu.elf import listing
from tilewright.backends.cpu.native import compile_native
from tilewright.core.program import Function, Program
from tilewright.errors import brief
from tilewright.frontend.programs import as_program
from tilewright.interpret.machine import Machine
from tilewright.passes.manager import OptimizationStrategy, PassManager
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.program import CompiledProgram

DEFAULT, INTERPRETER = "cpu", "interpret"
PLATFORMS = (DEFAULT, INTERPRETER, "a2a3sim", "a2a3", "a5sim", "a5")
"""Where a program can run: the interpreter, or the processor, which is also what the PTO family's names stand for."""


@brief
def compile(
    program: Program | Function,
    output_dir: str | Path | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool = False,
    platform: str = DEFAULT,
) -> CompiledProgram:
    """Return `program` ready to run; with `dump_passes` each pass's result is written below `output_dir`."""
    if platform not in PLATFORMS:
        raise ValueError(f"unknown platform {platform!r}; one of {', '.join(PLATFORMS)}")
    if platform != INTERPRETER and (sys.platform, machine()) != ("linux", "x86_64"):
        help = f"pass platform={INTERPRETER!r} to run programs here"
        raise ValueError(f"native code runs on Linux and x86-64, not on {sys.platform} and {machine()}: {help}")
    source = as_program(program)
    directory = Path(output_dir) if output_dir is not None else None
    lowered = PassManager.get_strategy(strategy).run_passes(source, dump_ir=dump_passes, output_dir=directory)
    if platform == INTERPRETER:
        return CompiledProgram(source, platform, Machine(lowered).run, {"ir": lambda: str(lowered)})
    return _native(source, lowered, platform)


def _native(source: Program, lowered: Program, platform: str) -> CompiledProgram:
    """Return a program as native code, each of its stages there to be read."""
    code = compile_native(lowered, entries=[entry.name for entry in source.entries])
    artifact = Artifact(source, code)
    stages = {
        "ir": lambda: str(lowered),
        "llvm": lambda: code.text,
        "assembly": lambda: assembly(code.text, code.target),
        "object": lambda: listing(code.object),
    }
    native = artifact.load()
    return CompiledProgram(source, platform, native.run, stages, artifact, native)


def stages_of(make: Callable[[], Program], strategy: OptimizationStrategy) -> dict[str, Callable[[], str]]:
    """Return the stages of a program that was kept, each made again from its source when it is looked at."""
    source = cache(make)
    lowered = cache(lambda: PassManager.get_strategy(strategy).run_passes(source()))
    code = cache(lambda: compile_native(lowered(), entries=[entry.name for entry in source().entries]))
    return {
        "ir": lambda: str(lowered()),
        "llvm": lambda: code().text,
        "assembly": lambda: assembly(code().text, code().target),
    }


def run(program: Program | Function, *args: Any, platform: str = DEFAULT) -> CompiledProgram:
    """Compile a program, run it once on `args`, and return it."""
    compiled = compile(program, platform=platform)
    compiled(*args)
    return compiled
