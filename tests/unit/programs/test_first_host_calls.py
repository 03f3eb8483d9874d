"""First calls of host functions whose parts are kept: what a process has to load for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright.errors import ExecutionError
from tilewright.programs.distributed.shared_memory import NearMemory

CALLING = """
import sys
import numpy as np
from doubling import host
from tilewright.runtime import RunConfig
x, y = np.ones((2, 1, 8), np.float32), np.zeros((2, 1, 8), np.float32)
host(x, y, config=RunConfig(device_ids=[0, 1]))
assert (y == 2).all()
print(*sorted(name for name in sys.modules if name.startswith("tilewright.")))
"""
COMPILER = {"tilewright.programs.compiler", "tilewright.passes.manager", "tilewright.passes.pipeline"}
BESIDES = {
    *("tilewright.frontend.collectives", "tilewright.frontend.reductions", "tilewright.interpret.ranks"),
    *(f"tilewright.programs.distributed.{name}" for name in ("device_team", "distant_memory", "overlapped", "worker")),
}
"""What programs without collectives need nothing of, where all ranks are on processors of one machine."""


def called(folder: Path) -> set[str]:
    """Return what a new process loads to call a host function."""
    place = str(Path(__file__).parent)
    told = {"TILEWRIGHT_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join([place, *sys.path])}
    run = subprocess.run([sys.executable, "-c", CALLING], env={**os.environ, **told}, text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_what_is_kept_runs_without_the_compiler_and_without_what_other_programs_need(tmp_path: Path) -> None:
    first, second = called(tmp_path), called(tmp_path)
    assert first >= COMPILER
    assert not second & (COMPILER | BESIDES)


class Group:
    """A group of two processes, the other of which has gone before its memory could be opened."""

    rank = 0
    processes = (os.getpid(), os.getpid())

    def exchanged(self, value: object, about: str) -> list[Any]:
        """Return what both have brought: the other one a descriptor that nothing is behind."""
        return [value, (1 << 20, 4096)]

    def check(self) -> None:
        """Raise what the other one has said."""
        raise ExecutionError("rank 1 failed: no")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="memory is shared where Linux does")
def test_memory_of_a_process_that_has_failed_meanwhile_is_no_mistake_of_this_one() -> None:
    group: Any = Group()
    with pytest.raises(ExecutionError, match="rank 1 failed: no"):
        NearMemory(group, 0)
