"""Crashes: a process that ends over native code leaves the program behind."""

from __future__ import annotations

import os

from property.crashes import last_words, note_of
from property.native import named


def test_a_program_is_in_a_file_while_it_runs_and_only_then() -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    who = (worker, os.getppid()) if worker else ("main", os.getpid())
    with named("text"):
        assert last_words(*who) == f"it was running {note_of(*who)}:\n\ntext"
    assert not last_words(*who)
