"""Programs of many ranks over processes: results, faults, and calls after faults."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from processes import launched

WORKER = Path(__file__).with_name("distributed_worker.py")


TRANSPORTS = [
    pytest.param(
        "memory", marks=pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="memory is shared where Linux does")
    ),
    "messages",
]
"""How processes reach the windows of others."""


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_processes_have_windows_end_together_and_go_on_after_faults(tmp_path: Path, transport: str) -> None:
    first, second = launched(2, tmp_path, WORKER, transport)
    works = ": [2, 12, 24, 4] [in time]"
    for said in (first, second):
        lines = said.splitlines()
        assert [line.replace("late", "in time") for line in lines if line.startswith("works")] == [f"works{works}"], (
            said
        )
        assert [line for line in lines if line.startswith("again")] == [f"again{works}"], said
        assert [line for line in lines if line.startswith("recovers")] == [f"recovers{works}"] * 3, said
        faults = [line for line in lines if line.split(":")[0] in ("raises", "hangs", "waits", "dies")]
        assert len(faults) >= 3 and all(line.endswith("[in time]") for line in faults), said
        assert "grouped: [2, 12]" in lines, said
        differing = [line for line in lines if line.startswith("differing: ")]
        assert [line == "differing: True" for line in differing] == [False, True] * 3, said
        for line, columns in zip(differing[::2], ((3, 4), (4, 3), (3, 4)), strict=True):
            assert "processes were called with different `x`" in line, said
            assert all(f"rank {rank} passed [2, {n}] int32" in line for rank, n in enumerate(columns)), said
        examples = [line for line in lines if line.startswith("example ")]
        assert len(examples) >= 11 and all(line.endswith(": right") for line in examples), said
    told = {line.split(":")[0]: line for line in first.splitlines() if ": " in line}
    assert "rank 1 failed: x must not be negative" in told["raises"]
    assert "cell [0, 0] is 2, and it waits for == 7" in told["hangs"] and "nobody can end that" in told["hangs"]
    assert "rank 1: it waits for rank 0" in told["hangs"] and "distributed_worker.py:" in told["hangs"]
    late = "rank 1 has not come: rank 0 has waited 5 s for it"
    assert told["waits"].startswith(f"waits: {late}"), first
    assert any(line.startswith(f"waits: rank 0 failed: {late}") for line in second.splitlines()), second
    assert "rank 0: this wait was ended" in second
    assert "the process of rank 1 has ended" in told["dies"]
    assert "x must not be negative" in second and "on rank 1" in second


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_an_output_holds_beforehand_does_not_matter(tmp_path: Path, transport: str) -> None:
    for said in launched(2, tmp_path, WORKER.with_name("outputs_worker.py"), transport):
        assert len(said.splitlines()) == 8 and all(line.endswith(": right") for line in said.splitlines()), said


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_ranks_touch_a_tensor_of_the_callers_in_the_order_of_their_dispatches(tmp_path: Path, transport: str) -> None:
    for said in launched(3, tmp_path, WORKER.with_name("hazards_worker.py"), transport):
        names = "overwritten", "written_twice", "written_by_turns", "added"
        assert said.splitlines()[:8] == [f"{name}: right" for name in names for _ in range(2)], said
        at_once = "[0.0, 6.0, 0.0]" if transport == "memory" else "ranks 0 and 1 add to one tensor, and share no memory"
        assert f"added_at_once: {at_once}" in said
        assert "rank 0 reads what rank 1 has written to a tensor that the host function makes" in said
        assert "make it a parameter" in said


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="processes share memory where Linux does")
def test_host_functions_take_dtensors_and_have_gradients_beside_ddp(tmp_path: Path) -> None:
    for said in launched(2, tmp_path, WORKER.with_name("shards_worker.py")):
        lines = [line for line in said.splitlines() if line.endswith((": right", ": True"))]
        wanted = ["returned: right", "placed: True", "in place: right", "compiled: right", "stayed: True"]
        wanted += ["gathered: right", "gathered in place: right", "went: True", "refused: True"]
        wanted += ["along an axis: right", "placed along it: True"]
        wanted += [
            "stayed with a gradient: True",
            "beside DDP: right",
            "operator: right",
            "tensor parallel: right",
            "its gradients: right",
        ]
        assert lines == [*wanted, "its module's: right", "compiled by torch: right"], said


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_process_that_fails_at_any_wait_ends_the_other_and_the_next_call_works(
    tmp_path: Path, transport: str
) -> None:
    for said in launched(2, tmp_path, WORKER.with_name("faults_worker.py"), transport):
        lines = said.splitlines()
        assert len(lines) >= 12 and all(line.endswith(": right") for line in lines), said
        assert all(int(line.split()[1]) >= 2 for line in lines), said


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted where Linux lists them")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("group", "calls"), [("found", 1), ("made", 3)])
def test_no_thread_of_torch_is_left_that_could_abort_a_process_which_ends(
    tmp_path: Path, transport: str, group: str, calls: int
) -> None:
    for said in launched(2, tmp_path, WORKER.with_name("leaving_worker.py"), transport, group):
        assert said.splitlines() == ["sums: [2.0]"] * calls + ["left: []"], said


def said_by(tmp_path: Path, transport: str, mode: str) -> list[list[str]]:
    """Return the lines that each of two processes prints of which one ends in some way."""
    return [said.splitlines() for said in launched(2, tmp_path, WORKER.with_name("ending_worker.py"), transport, mode)]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_computing_for_long_is_no_waiting(tmp_path: Path, transport: str) -> None:
    wanted = [f"{name}: right [in time]" for name in ("first", "meet", "computes")]
    assert said_by(tmp_path, transport, "long") == [wanted] * 2


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_tensors_that_lie_otherwise_in_one_process_leave_all_with_the_same_plans(
    tmp_path: Path, transport: str
) -> None:
    assert (
        said_by(tmp_path, transport, "otherwise") == [["first: right [in time]", *12 * ["lies: right [in time]"]]] * 2
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_interrupt_ends_the_code_of_its_rank_and_is_told_the_other(tmp_path: Path, transport: str) -> None:
    first, second = said_by(tmp_path, transport, "interrupt")
    assert first[1] == "interrupted: KeyboardInterrupt  [in time]", first
    assert second[1] == "interrupted: ExecutionError rank 0 failed: KeyboardInterrupt [in time]", second
    assert first[2] == second[2] == "recovers: right [in time]"


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="memory is shared where Linux does")
def test_a_process_that_has_gone_before_all_make_ready_is_named(tmp_path: Path) -> None:
    first, second = said_by(tmp_path, "memory", "gone")
    assert second == ["first: right [in time]"]
    wanted = "gone: ExecutionError the process of rank 1 has ended while rank 0 made ready to run [in time]"
    assert first == ["first: right [in time]", wanted]


def test_a_process_that_never_comes_is_waited_for_no_longer_than_was_said(tmp_path: Path) -> None:
    first, _ = said_by(tmp_path, "memory", "absent")
    assert first[-1].startswith("first: ExecutionError rank 1 has not come: rank 0 has waited 3 s for it"), first
    assert first[-1].endswith("[in time]"), first


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", ["hangs", "hangs anew"])
def test_no_rank_waits_longer_than_the_group_of_the_script(tmp_path: Path, transport: str, mode: str) -> None:
    first, _ = said_by(tmp_path, transport, mode)
    assert first[-1].startswith("hangs: ExecutionError rank 1 has not come: rank 0 has waited 8 s for it"), first
    assert first[-1].endswith("[in time]"), first


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_goes_wrong_with_a_plan_in_one_process_is_told_the_others(tmp_path: Path, transport: str) -> None:
    first, second = said_by(tmp_path, transport, "unplanned")
    assert "nobody has said what `unsaid` does" in first[1], first
    assert second[1].startswith("unplanned: ExecutionError rank 0 failed: nobody has said what `unsaid` does"), second
    assert first[2] == second[2] == "recovers: right [in time]"
