"""Distributed programs: what `ir.compile` and a host function's `compile` give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.core.program import Program
from tilewright.core.verify import verify
from tilewright.interpret.hosts import chip_program, chips
from tilewright.passes import control_plane
from tilewright.programs.distributed.config import DistributedConfig
from tilewright.programs.distributed.group import launched_size
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
    ranked = Ranked(source, _placed(config), target, lambda name: compile(chip_program(source, name)))
    for name in chips(source) if target != INTERPRETER else ():
        ranked.chip(name)
    return DistributedCompiledProgram(source, platform, ranked, {"ir": lambda: str(source)})


def _placed(config: DistributedConfig | None) -> DistributedConfig:
    """Return on which devices a program runs: where processes were launched together, a rank is each of them."""
    size = launched_size()
    if config is None:
        return DistributedConfig(range(size))
    if size > 1 and size != len(config.device_ids):
        raise ValueError(f"device_ids names {len(config.device_ids)} device(s), and {size} processes were launched")
    return config
