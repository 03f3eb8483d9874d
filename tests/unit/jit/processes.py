"""Processes: kernels called in fresh ones, which share nothing with a test but files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tilewright

WORKER = Path(__file__).with_name("process_worker.py")
SOURCES = Path(tilewright.__file__).parents[1]


@dataclass(frozen=True)
class Run:
    """What the kernel of a module did in a process of its own."""

    results: list[float]
    error: str
    hits: int
    misses: int
    compiles: int
    currsize: int
    modules: list[str]
    warnings: str

    @property
    def result(self) -> float:
        """What every call gave."""
        assert not self.error, self.error
        assert len(set(self.results)) == 1
        return self.results[0]


def environment(cache: Path | str, **others: str) -> dict[str, str]:
    """Return the environment of a process with a cache of its own.

    Python keeps no bytecode there: it would take a file for unchanged that is edited twice in a second.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TILEWRIGHT_")}
    own = {"PYTHONPATH": str(SOURCES), "PYTHONDONTWRITEBYTECODE": "1", "TILEWRIGHT_CACHE_DIR": str(cache)}
    return {**inherited, **own, **others}


def start(path: Path, cache: Path | str, before: str = "", index: int = 0, **others: str) -> subprocess.Popen[str]:
    """Start a process that calls the kernel in a file."""
    return subprocess.Popen(
        [sys.executable, str(WORKER), str(path), before, str(index)],
        env=environment(cache, **others), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> Run:
    """Return what a process did."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    found: dict[str, Any] = json.loads(output)
    return Run(**found, warnings=errors)


def run(path: Path, cache: Path | str, before: str = "", index: int = 0, **others: str) -> Run:
    """Return what the kernel in a file does in a fresh process."""
    return finish(start(path, cache, before, index, **others))
