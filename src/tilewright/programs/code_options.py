"""Code options: what a program's code depends on besides its arguments."""

from __future__ import annotations

from typing import TypeAlias, cast

from tilewright.passes.strategy import OptimizationStrategy
from tilewright.programs.platforms import DEFAULT

CodeOptions: TypeAlias = tuple[str, str, bool, str | None]
"""Back end and strategy, by name, whether it is checked, and the target where that is not this machine."""

DEFAULT_OPTIONS: CodeOptions = (DEFAULT, OptimizationStrategy.Default.name, False, None)
"""The code options of a call without a configuration."""


def code_options(config: object) -> CodeOptions:
    """Return what code depends on for a call with a configuration or without; TypeError for what is none."""
    if config is None:
        return DEFAULT_OPTIONS
    found: object = getattr(config, "code_options", None)
    if not isinstance(found, tuple):
        raise TypeError(f"`config` takes a RunConfig of tilewright.runtime, got {type(config).__name__}")
    return cast(CodeOptions, found)
