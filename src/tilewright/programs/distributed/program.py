"""Distributed programs: what `ir.compile` and a host function's `compile` give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.core.program import Program
from tilewright.core.verify import verify
from tilewright.interpret.hosts import chip_program, chips
from tilewright.passes import control_plane
from tilewright.programs.distributed.config import DistributedConfig
from tilewright.programs.distributed.ranked import Ranked
from tilewright.programs.platforms import INTERPRETER, target_of
from tilewright.programs.program import CompiledProgram


class DistributedCompiledProgram(CompiledProgram):
    """A program of many ranks, ready to run: called like any other, it returns once all ranks are done."""

    loaded: Ranked

    @property
    def distributed_config(self) -> DistributedConfig:
        """On which devices it runs."""
        return self.loaded.config

    def configured(self, config: Any) -> CompiledProgram:
        """Return this program: its ranks were settled when it was compiled."""
        return self

    def __repr__(self) -> str:
        return f"DistributedCompiledProgram({self.declared.name!r}, device_ids={list(self.loaded.config.device_ids)})"


def compile_distributed(
    source: Program, config: DistributedConfig | None, platform: str, compile: Callable[[Program], CompiledProgram]
) -> DistributedCompiledProgram:
    """Return a program with host functions ready to run; `compile` makes what they dispatch."""
    verify(source, types=False)
    control_plane.run(source)
    target = target_of(platform)
    ranked = Ranked(source, config or DistributedConfig(), target, lambda name: compile(chip_program(source, name)))
    for name in chips(source) if target != INTERPRETER else ():
        ranked.chip(name)
    return DistributedCompiledProgram(source, platform, ranked, {"ir": lambda: str(source)})
