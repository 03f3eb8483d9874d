"""Execution: programs run in one step, from their source or from where they were saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tilewright.core.program import Function, Program
from tilewright.programs.config import RunConfig
from tilewright.programs.program import CompiledProgram


def run(
    program: Program | Function, *args: Any, config: RunConfig | None = None, platform: str | None = None
) -> CompiledProgram:
    """Compile a program, run it once on `args`, and return it.

    Without arguments, where it takes some, and with `config.codegen_only` it is compiled only.
    """
    from tilewright.programs.compiler import compile

    options: dict[str, Any] = {} if config is None else config.compile_kwargs()
    if platform is not None:
        options["platform"] = platform
    compiled = compile(program, **options)
    if (args or not compiled.param_names) and (config is None or not config.codegen_only):
        compiled(*args, config=config)
    return compiled


def execute_compiled(
    work_dir: str | os.PathLike[str] | CompiledProgram,
    args: Sequence[Any],
    *,
    platform: str | None = None,
    device_id: int | None = None,
    config: RunConfig | None = None,
) -> None:
    """Run a compiled program, or the one saved in a folder, in place.

    `platform`, `device_id` and `config` are for scripts of the PTO family: where a program runs was settled when it
    was compiled. FileNotFoundError where none was saved; TypeError where `args` are not all of its parameters.
    """
    compiled = work_dir if isinstance(work_dir, CompiledProgram) else CompiledProgram.load(work_dir)
    if len(args) != len(compiled.param_names):
        wanted = ", ".join(compiled.param_names)
        raise TypeError(f"execute_compiled runs in place and takes every parameter ({wanted}), got {len(args)}")
    compiled(*args)
