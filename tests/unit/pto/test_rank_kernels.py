"""Hand-written kernels between ranks: in the interpreter, on threads, over processes and by messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import launched
from unit.pto.rank_kernels import CASES, RANKS, is_right

WORKER = Path(__file__).with_name("ranks_worker.py")


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_ranks_of_one_process_leave_what_numpy_says(name: str, platform: str) -> None:
    assert is_right(name, platform)


@pytest.mark.parametrize("transport", ["memory", "messages"])
def test_processes_leave_what_numpy_says(transport: str, tmp_path: Path) -> None:
    for said in launched(RANKS, tmp_path, WORKER, transport):
        assert said.splitlines() == [f"{name}: right" for name in CASES], said
