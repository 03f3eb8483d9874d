"""Profiles: how long each stage of compiling a program took."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import field
from time import perf_counter

from tilewright.core.program import Program
from tilewright.records import mutable, record


@record
class StageRecord:
    """One stage: when it began and ended, in seconds by the same clock, and what it consisted of."""

    name: str
    start: float
    end: float
    children: Sequence[StageRecord] = ()

    @property
    def duration(self) -> float:
        """How long it took, in seconds."""
        return self.end - self.start


@mutable
class Profile:
    """The stages of one compilation, in the order they ran; as an instrument of the passes it times each of them."""

    records: list[StageRecord] = field(default_factory=list[StageRecord])
    _start: float = 0.0

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage; one that runs several times counts once."""
        found: dict[str, float] = {}
        for each in self.records:
            found[each.name] = found.get(each.name, 0.0) + each.duration
        return found

    @contextmanager
    def timed(self, stage: str) -> Generator[None]:
        """Time what happens inside."""
        start = perf_counter()
        yield
        self.records.append(StageRecord(stage, start, perf_counter()))

    def before_pass(self, name: str, program: Program) -> None:
        """Start the clock of a pass."""
        self._start = perf_counter()

    def after_pass(self, name: str, program: Program) -> None:
        """Stop the clock of a pass."""
        self.records.append(StageRecord(name, self._start, perf_counter()))

    def to_json(self) -> str:
        """Return the seconds by stage, for programs."""
        return json.dumps({"unit": "s", "stages": self.seconds}, indent=1) + "\n"

    def __str__(self) -> str:
        if not self.records:
            return "nothing was compiled: the program was kept\n"
        return table(self.seconds.items(), sum(self.seconds.values()))


def table(rows: Iterable[tuple[str, float]], total: float) -> str:
    """Return times as lines, with their part of all and the sum."""
    share = 100 / total if total else 0.0
    return "".join(
        f"{name:<30} {1e3 * took:9.3f} ms {took * share:5.1f} %\n" for name, took in (*rows, ("total", total))
    )
