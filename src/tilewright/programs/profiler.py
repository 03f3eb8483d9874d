"""Compile profilers: where the time of everything goes that is compiled inside `with CompileProfiler()`."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from pathlib import Path
from time import perf_counter
from typing import Any

from tilewright.programs.profile import StageRecord, table

__all__ = ["CompileProfiler", "StageRecord", "get_active_profiler"]

REPORT = "pipeline_profile"


class CompileProfiler:
    """Stages of compiling, each with those it consists of; programs compiled inside `with` add theirs."""

    def __init__(self) -> None:
        self.records: list[StageRecord] = []
        self._open: list[list[StageRecord]] = [self.records]
        """Where stages that end now belong: the innermost that has not ended is last."""
        self._tokens: list[Token[CompileProfiler | None]] = []

    @staticmethod
    def current() -> CompileProfiler | None:
        """Return the innermost profiler that is active, or None."""
        return _ACTIVE.get()

    def __enter__(self) -> CompileProfiler:
        self._tokens.append(_ACTIVE.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _ACTIVE.reset(self._tokens.pop())

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Time what happens inside, as a stage of the one around it."""
        start, inside = perf_counter(), list[StageRecord]()
        self._open.append(inside)
        try:
            yield
        finally:
            self._open.pop()
            self.add_stage_record(StageRecord(name, start, perf_counter(), tuple(inside)))

    def add_stage_record(self, record: StageRecord) -> None:
        """Add a stage that somebody else has timed."""
        self._open[-1].append(record)

    @property
    def total_seconds(self) -> float:
        """How long all stages took."""
        return sum(record.duration for record in self.records)

    def to_dict(self) -> dict[str, Any]:
        """Return the stages as plain values."""
        return {"total_seconds": self.total_seconds, "stages": [_plain(record) for record in self.records]}

    def to_json(self, path: str | os.PathLike[str] | None = None, indent: int = 2) -> str:
        """Return the stages as JSON, and write it where a path is given."""
        text = json.dumps(self.to_dict(), indent=indent) + "\n"
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def summary(self) -> str:
        """Return the stages as lines, those within others below them."""
        return table(_rows(self.records), self.total_seconds)

    def write_report(self, directory: str | os.PathLike[str]) -> None:
        """Write the stages into a folder, for people and for programs."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{REPORT}.txt").write_text(self.summary(), encoding="utf-8")
        self.to_json(folder / f"{REPORT}.json")


def get_active_profiler() -> CompileProfiler | None:
    """Return the innermost profiler that is active, or None."""
    return CompileProfiler.current()


_ACTIVE: ContextVar[CompileProfiler | None] = ContextVar("compile_profiler", default=None)


def _rows(records: Sequence[StageRecord], depth: int = 0) -> Iterator[tuple[str, float]]:
    for record in records:
        yield "  " * depth + record.name, record.duration
        yield from _rows(record.children, depth + 1)


def _plain(record: StageRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "start": record.start,
        "end": record.end,
        "seconds": record.duration,
        "children": [_plain(child) for child in record.children],
    }
