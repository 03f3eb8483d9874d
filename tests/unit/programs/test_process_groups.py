"""Groups of some processes of several: programs run on them, and torch makes others after that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import processes
import pytest
from processes import LIMIT, launched

pytest.importorskip("torch.distributed")
WORKER = Path(__file__).with_name("groups_worker.py")


def test_a_program_on_a_group_of_some_processes_leaves_all_of_them_able_to_make_others(tmp_path: Path) -> None:
    wanted = {(0, 1): 32, (0, 1, 2): 48, (1, 2): 32, (2, 0): 32}
    for rank, said in enumerate(launched(3, tmp_path, WORKER)):
        assert said.splitlines() == [f"{[*ranks]} have {total}" for ranks, total in wanted.items() if rank in ranks]


@pytest.mark.parametrize("transport", ["memory", "messages"])
def test_groups_that_were_left_leave_no_descriptors_behind(tmp_path: Path, transport: str) -> None:
    for said in launched(2, tmp_path, WORKER.with_name("descriptors_worker.py"), transport):
        first, second, third = said.splitlines()
        assert first.startswith("sum 32, "), said
        assert second == third, said


def test_processes_that_a_launcher_starts_again_meet_anew(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--max-restarts", "1", str(WORKER.with_name("restarted_worker.py"))]
    told = {"OMP_NUM_THREADS": "1", "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    told["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(processes.__file__).parent), os.environ.get("PYTHONPATH")])
    )
    said = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, timeout=LIMIT)
    assert "rank 1 has not come: rank 0 has waited 5 s for it" in said.stderr, said
    assert said.stdout.count("attempt 1: 32") == 2, said


@pytest.mark.parametrize("ranks", [2, 3])
def test_two_programs_in_turns_are_not_taken_for_different_calls_where_messages_are_slow(
    ranks: int, tmp_path: Path
) -> None:
    for said in launched(ranks, tmp_path, WORKER.with_name("slow_worker.py"), "messages"):
        assert said.splitlines()[-1:] == ["in turns"], said
