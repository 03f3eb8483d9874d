"""Gathers that go on while their rows are read: results, and ranks that fail meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import launched

WORKER = Path(__file__).with_name("overlap_worker.py")


@pytest.mark.parametrize(("ranks", "pieces"), [(2, 1), (2, 4), (3, 4)])
def test_rows_are_multiplied_as_they_come(ranks: int, pieces: int, tmp_path: Path) -> None:
    for rank, said in enumerate(launched(ranks, tmp_path, WORKER, "messages", str(pieces))):
        *lines, functions, links = said.splitlines()
        assert links == f"links: {ranks - 1}", said  # those of runs that were given up are closed
        assert functions == "multiply_awaiting_rows publish", said
        assert lines[:3] == ["right"] * 3 and lines[4::2] == ["right"] * ranks, said
        for wrong, line in enumerate(lines[3::2]):
            who = "own: " if rank == wrong else f"told: rank {wrong} failed: "
            assert line.startswith(who) and "a must not be negative" in line, said
