"""Crashes: a process that ends over native code leaves the program behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from property.crashes import last_words, note_of
from property.native import named

ROOT = Path(__file__).parents[2]

CRASH = """
import os
from property.native import named

def test_that_ends_its_process():
    with named("the program", "program(Random(7).randint), arguments of seed 1"):
        os.abort()
"""


def test_a_program_is_in_a_file_while_it_runs_and_only_then() -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    who = (worker, os.getppid()) if worker else ("main", os.getpid())
    with named("text", "origin"):
        assert last_words(*who) == f"it was running {note_of(*who)}:\n\n# origin\ntext"
    assert not last_words(*who)


def test_a_worker_that_ends_is_reported_with_its_program_and_seed(tmp_path: Path) -> None:
    (tmp_path / "test_crash.py").write_text(CRASH, encoding="utf-8")
    # what this run sets for its own worker is not for the other's
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "1",
            "-c",
            str(ROOT / "pyproject.toml"),
            "-p",
            "conftest",
            str(tmp_path),
        ],
        env={**kept, "PYTHONPATH": paths, "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "# program(Random(7).randint), arguments of seed 1\nthe program" in ended.stdout
