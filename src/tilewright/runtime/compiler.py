"""Compiling: a program through the passes to something that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.backends.cpu.assemble import assembly
from tilewright.backends.cpu.native import NativeProgram, compile_native
from tilewright.backends.cpu.target import host
from tilewright.core.program import Function, Program
from tilewright.errors import brief
from tilewright.frontend.programs import as_program
from tilewright.interpret.machine import Machine
from tilewright.passes.manager import OptimizationStrategy, PassManager
from tilewright.runtime.program import CompiledProgram

PLATFORMS = ("interpret", "cpu", "a2a3sim", "a2a3", "a5sim", "a5")
"""Where a program can run; every name of the PTO family maps to what this machine has."""


@brief
def compile(
    program: Program | Function,
    output_dir: str | Path | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool = False,
    platform: str = "interpret",
) -> CompiledProgram:
    """Return `program` ready to run; with `dump_passes` each pass's result is written below `output_dir`."""
    if platform not in PLATFORMS:
        raise ValueError(f"unknown platform {platform!r}; one of {', '.join(PLATFORMS)}")
    source = as_program(program)
    directory = Path(output_dir) if output_dir is not None else None
    lowered = PassManager.get_strategy(strategy).run_passes(source, dump_ir=dump_passes, output_dir=directory)
    if platform == "cpu":
        return _native(source, lowered)
    return CompiledProgram(source, platform, Machine(lowered).run, {"ir": lambda: str(lowered)})


def _native(source: Program, lowered: Program) -> CompiledProgram:
    """Return a program as native code, each of its stages there to be read."""
    native = NativeProgram(lowered, compile_native(lowered))
    stages = {
        "ir": lambda: str(lowered),
        "llvm": lambda: native.code.text,
        "assembly": lambda: assembly(native.code.text, host()),
    }
    return CompiledProgram(source, "cpu", native.run, stages)


def run(program: Program | Function, *args: Any, platform: str = "interpret") -> CompiledProgram:
    """Compile a program, run it once on `args`, and return it."""
    compiled = compile(program, platform=platform)
    compiled(*args)
    return compiled
