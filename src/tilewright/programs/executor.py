"""Executors: who is told of each run of a program while it is the current one."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from tilewright.backends.interface import Entries


class Dispatched(Protocol):
    """What an executor looks at of a program that is about to run."""

    loaded: Entries
    platform: str
    runtime_name: str


class Executor(Protocol):
    """Notes the programs that run."""

    def dispatched(self, compiled: Dispatched) -> None:
        """Note that a program is about to run."""
        ...


CURRENT: ContextVar[Executor | None] = ContextVar("executor", default=None)
"""The worker that programs run on by themselves, inside `with ChipWorker(...)`."""
