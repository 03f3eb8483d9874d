"""Every collective at both levels: in the interpreter, on threads, over processes, on ranks from one to eight."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import launched
from unit.programs.collectives import LEVELS, OPS, is_right

WORKER = Path(__file__).with_name("collectives_worker.py")


@pytest.mark.parametrize(
    ("platform", "ranks"), [("interpret", 1), ("interpret", 3), ("cpu", 1), ("cpu", 2), ("cpu", 3), ("cpu", 8)]
)
@pytest.mark.parametrize("level", LEVELS)
def test_ranks_of_one_process_have_what_numpy_says(platform: str, ranks: int, level: str) -> None:
    assert [op for op in OPS if not is_right(ranks, op, level, platform)] == []


@pytest.mark.parametrize("transport", ["memory", "messages"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_have_what_numpy_says(ranks: int, transport: str, tmp_path: Path) -> None:
    wanted = [f"{op} {level}: right" for op in OPS for level in LEVELS]
    for said in launched(ranks, tmp_path, WORKER, transport):
        assert said.splitlines() == wanted, said
