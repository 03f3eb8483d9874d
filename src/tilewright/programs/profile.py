"""Profiles: how long each stage of compiling a program took."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field
from time import perf_counter

from tilewright.core.program import Program
from tilewright.records import mutable


@mutable
class Profile:
    """Seconds by stage, in the order they ran; as an instrument of the passes it times each of them."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    _start: float = 0.0

    @contextmanager
    def timed(self, stage: str) -> Generator[None]:
        """Time what happens inside."""
        start = perf_counter()
        yield
        self._add(stage, perf_counter() - start)

    def before_pass(self, name: str, program: Program) -> None:
        """Start the clock of a pass."""
        self._start = perf_counter()

    def after_pass(self, name: str, program: Program) -> None:
        """Stop the clock of a pass; one that runs several times counts once."""
        self._add(name, perf_counter() - self._start)

    def _add(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def to_json(self) -> str:
        """Return the seconds by stage, for programs."""
        return json.dumps({"unit": "s", "stages": self.seconds}, indent=1) + "\n"

    def __str__(self) -> str:
        if not self.seconds:
            return "nothing was compiled: the program was kept\n"
        total = sum(self.seconds.values())
        rows = [*self.seconds.items(), ("total", total)]
        share = 100 / total if total else 0.0
        return "".join(f"{name:<30} {1e3 * took:9.3f} ms {took * share:5.1f} %\n" for name, took in rows)
