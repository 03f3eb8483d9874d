"""Hand-written kernels between ranks: in the interpreter, on threads, over processes and by messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy
import pytest
from processes import launched
from unit.pto.rank_kernels import CASES, COLS, RANKS, ROWS, case_of, host_of, is_right, put, wait

from tilewright.errors import ExecutionError, RaceError
from tilewright.programs.distributed import ranked
from tilewright.runtime import DistributedConfig, RunConfig

np = cast("Any", numpy)
WORKER = Path(__file__).with_name("ranks_worker.py")


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_ranks_of_one_process_leave_what_numpy_says(name: str, platform: str) -> None:
    assert is_right(name, platform)


@pytest.mark.parametrize("transport", ["memory", "messages"])
def test_processes_leave_what_numpy_says(transport: str, tmp_path: Path) -> None:
    for said in launched(RANKS, tmp_path, WORKER, transport):
        assert said.splitlines() == [f"{name}: right" for name in CASES], said


def ran(lines: Callable[[int], list[str]], platform: str, timeout_s: float = 300) -> None:
    """Run what each rank does."""
    config = DistributedConfig(device_ids=range(RANKS), timeout_s=timeout_s)
    host = host_of(case_of(lines, lambda x, y: y))
    x, y = np.ones((RANKS, ROWS, COLS), np.float32), np.zeros((RANKS, RANKS * ROWS, COLS), np.float32)
    host(x, y, config=RunConfig(platform=platform, distributed_config=config))


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_ranks_that_wait_for_what_nobody_sets_are_told_so(platform: str) -> None:
    with pytest.raises(
        ExecutionError, match=r"wait(.|\n)*pto.comm.twait\(%s00(.|\n)*every wait needs a notify of a peer"
    ):
        ran(lambda me: [wait(me, 0, "ge", 1)], platform)


def test_the_interpreter_tells_ranks_that_look_again_and_again_in_vain() -> None:
    look = "pto.comm.ttest(%s00, %i3 : !pto.tensor_view<1x1xi32>, i32) {cmp = #pto<wait_cmp ne>} -> i1"
    loop = ["scf.while : () -> () {", f"%again = {look}", "scf.condition(%again)", "} do {", "scf.yield", "}"]
    with pytest.raises(ExecutionError, match="rank 0 looks again and again for a signal, and all ranks wait"):
        ran(lambda me: loop if me == 0 else [wait(me, 0, "eq", 1)], "interpret")


def test_who_looks_at_the_same_number_for_too_long_has_waited_in_vain() -> None:
    look = "pto.comm.ttest(%s00, %i3 : !pto.tensor_view<1x1xi32>, i32) {cmp = #pto<wait_cmp ne>} -> i1"
    loop = ["scf.while : () -> () {", f"%again = {look}", "scf.condition(%again)", "} do {", "scf.yield", "}"]
    with pytest.raises(ExecutionError, match=r"waited for each other for more than 0.5 s(.|\n)*rank 2 has ended"):
        ran(lambda me: loop if me == 0 else [], "cpu", 0.5)


def test_a_rank_that_is_alone_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "thread_count", lambda: 64)  # on which a rank might do something else meanwhile
    with pytest.raises(ExecutionError, match="all ranks that are left wait, and nobody can end that"):
        ran(lambda me: [wait(me, 0, "ge", 1)] if me == 1 else [], "cpu", 5)


def test_the_interpreter_finds_ranks_that_meet_in_a_window() -> None:
    with pytest.raises(RaceError, match="help: let the one notify the other"):
        ran(lambda me: [put("w0", "vx")], "interpret")
