"""Run configurations: how a kernel is compiled and run."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.passes.manager import OptimizationStrategy


@dataclass(frozen=True)
class RunConfig:
    """Where and how to run; equal configurations share compiled programs."""

    platform: str = "cpu"
    strategy: OptimizationStrategy = OptimizationStrategy.Default
