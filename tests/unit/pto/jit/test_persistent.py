"""Kernels between processes: compiled once, found by their text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from unit.jit.processes import environment
from unit.pto.jit.kernels import ADD

WORKER = Path(__file__).with_name("kernel_worker.py")
SUMS = [512.0, 512.0, 512.0]


def run(path: Path, cache: Path | str, **others: str) -> dict[str, Any]:
    """Return what the kernel in a file does in a fresh process."""
    process = subprocess.run(
        [sys.executable, str(WORKER), str(path)], env=environment(cache, **others), capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def line_of(text: str, op: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if op in line)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "here" / "add.pto"
    path.parent.mkdir()
    path.write_text(ADD)
    return path


def test_a_second_process_neither_lowers_nor_loads_a_compiler(kernel: Path, tmp_path: Path) -> None:
    first, second = (run(kernel, tmp_path / "cache") for _ in range(2))
    assert (first["sums"], first["compiles"]) == (SUMS, 3)
    assert (second["sums"], second["compiles"]) == (SUMS, 0)
    assert not [name for name in second["modules"] if name.startswith(("llvmlite", "tilewright.pto.lower"))]
    assert first["error"] == second["error"] and "a view does not lie inside its buffer" in first["error"]


def test_moving_a_file_and_commenting_it_changes_nothing_but_where_errors_point(kernel: Path, tmp_path: Path) -> None:
    run(kernel, tmp_path / "cache")
    moved = kernel.with_name("moved.pto")
    moved.write_text(text := "// adds\n\n" + ADD.replace("  pto.t", "  // next\n    pto.t"))
    found = run(moved, tmp_path / "cache")
    assert (found["sums"], found["compiles"]) == (SUMS, 0)
    assert f"{moved}:{line_of(text, 'pto.tload')}:5: in kernel `add`" in found["error"]


def test_an_edited_file_is_compiled_again(kernel: Path, tmp_path: Path) -> None:
    run(kernel, tmp_path / "cache")
    kernel.write_text(ADD.replace("pto.tadd", "pto.tmul"))
    found = run(kernel, tmp_path / "cache")
    assert (found["sums"], found["compiles"]) == ([0.0, 0.0, 0.0], 3)


def test_without_a_cache_everything_is_compiled(kernel: Path) -> None:
    assert run(kernel, "off")["compiles"] == 3


def test_only_what_was_kept_runs_where_nothing_may_be_compiled(kernel: Path, tmp_path: Path) -> None:
    refused = run(kernel, tmp_path / "cache", TILEWRIGHT_RUN_ONLY="1")
    assert refused["error"].startswith("RunOnlyError: kernel `add` is not compiled")
    run(kernel, tmp_path / "cache")
    assert run(kernel, tmp_path / "cache", TILEWRIGHT_RUN_ONLY="1")["sums"] == SUMS
