"""Crashes: what a process was running when it ended."""

from __future__ import annotations

import tempfile
from pathlib import Path

FOLDER = Path(tempfile.gettempdir()) / "tilewright-running"


def note_of(worker: str, run: int) -> Path:
    """Return the file that holds the program which a worker of a test run, given by its process id, is running."""
    return FOLDER / f"{run}-{worker}.py"


def last_words(worker: str, run: int) -> str:
    """Return what is known of a worker that ended while it ran a program, or nothing."""
    note = note_of(worker, run)
    return f"it was running {note}:\n\n{note.read_text(encoding='utf-8')}" if note.exists() else ""
