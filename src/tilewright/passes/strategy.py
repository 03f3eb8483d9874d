"""Strategies: which passes run, and how much of their work is written down."""

from __future__ import annotations

from enum import Enum


class OptimizationStrategy(Enum):
    """Which passes run."""

    Default = "default"


class PassDumpLevel(Enum):
    """How much of the IR pass dumps show."""

    NONE = "none"
    CONCISE = "concise"
    EXPLICIT = "explicit"
