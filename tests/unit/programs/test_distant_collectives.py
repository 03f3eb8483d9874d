"""Rows that ranks without shared memory gather: what torch.distributed gathers, by broadcasts and by its own means."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import launched

from tilewright.programs.distributed.distant_collectives import FEW

WORKER = Path(__file__).with_name("gathers_worker.py")


@pytest.mark.parametrize("ranks", [2, 3, FEW, FEW + 1])
def test_rows_of_every_kind_of_element_are_gathered_as_torch_does(ranks: int, tmp_path: Path) -> None:
    printed = launched(ranks, tmp_path, WORKER, "messages")
    assert [text.splitlines()[-1:] for text in printed] == [["gathered"]] * ranks, "\n".join(printed)


@pytest.mark.parametrize("ranks", [2, FEW])
def test_who_broadcasts_may_be_ahead_where_ranks_reach_each_other_in_no_other_way(ranks: int, tmp_path: Path) -> None:
    printed = launched(ranks, tmp_path, WORKER.with_name("broadcasts_worker.py"), "messages")
    assert [text.splitlines()[-1:] for text in printed] == [["broadcast"]] * ranks, "\n".join(printed)
