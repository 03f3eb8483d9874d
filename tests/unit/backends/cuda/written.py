"""Programs written for a GPU, up to Triton: the texts of their kernels and of their host functions."""

from __future__ import annotations

from typing import Any

from tilewright.backends.cpu.host.options import Options
from tilewright.backends.cuda.host.program import LaunchingProgram
from tilewright.backends.cuda.target import named
from tilewright.backends.cuda.ttir.text import ANY_ROOM
from tilewright.core.program import Function, Program
from tilewright.frontend.programs import as_program
from tilewright.passes.manager import PassManager


def written(program: Program | Function, shared: int = ANY_ROOM) -> LaunchingProgram:
    """Return a program as it is written for a GPU with so much shared memory, every entry of it."""
    lowered = PassManager.get_strategy().run_passes(as_program(program))
    unit = LaunchingProgram(lowered, named("sm_90").processor, Options(), shared)
    for entry in lowered.entries:
        unit.entry(entry)
    return unit


def kernel_text(kernel: Any, *args: Any) -> str:
    """Return the text of a `@pl.jit` kernel's only launch, for some arguments, without where it comes from."""
    (found,) = written(kernel.specialize(*args).program).kernels
    return without_places(found.aligned)


def without_places(text: str) -> str:
    """Return a text without the lines of the kernel that it is for."""
    return "".join(line.partition(" loc(")[0].rstrip() + "\n" for line in _plain(text))


def _plain(text: str) -> list[str]:
    head = ' loc("kernel":0:0)'
    return [line.replace(f"{head},", ",").replace(f"{head})", ")") for line in text.splitlines()]
