"""The pipeline: which passes run, in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.core.program import Program


@dataclass(frozen=True)
class Pass:
    """A named step from program to program."""

    name: str
    run: Callable[[Program], Program]


DEFAULT: tuple[Pass, ...] = ()
