"""Processes whose calls do not belong together: all are told who passed what or came late, and the next call works."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import launched
from unit.programs.test_processes import TRANSPORTS

WORKER = Path(__file__).with_name("agreement_worker.py")


def said_by(ranks: int, tmp_path: Path, transport: str, mode: str) -> list[list[str]]:
    """Return the lines that each process prints."""
    return [said.splitlines() for said in launched(ranks, tmp_path, WORKER, transport, mode)]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_argument_that_does_not_fit_in_one_process_is_told_all(tmp_path: Path, transport: str) -> None:
    first, second = said_by(2, tmp_path, transport, "arguments")
    assert len(first) == len(second) == 14, (first, second)
    for own, other in zip(first, second, strict=True):
        if own.startswith("next"):
            assert own == other == "next: right [soon]", (first, second)
            continue
        kind, _, text = other.partition(": ")[2].removesuffix(" [soon]").partition(" ")
        assert kind in ("TypeError", "ValueError"), second
        assert own.partition(": ")[2] == f"ExecutionError rank 1 failed: {kind}: {text} [soon]", first


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_processes_that_call_different_functions_are_told_so(tmp_path: Path, transport: str) -> None:
    for lines in said_by(2, tmp_path, transport, "functions"):
        assert [line for line in lines if line.startswith("next")] == ["next: right [soon]"] * 7, lines
        for line in (lines[0], lines[2], lines[5], lines[8]):
            assert "processes called different host functions" in line and line.endswith("[soon]"), lines
            assert "rank 0 called `summed`" in line and "rank 1 called `copied`" in line, lines


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_plans_that_follow_from_other_elements_are_shown_where_they_part(tmp_path: Path, transport: str) -> None:
    for lines in said_by(2, tmp_path, transport, "elements"):
        rest = [line for line in lines if line.partition(":")[0] not in ("place", "count", "nothing", "room")]
        names = "same", "view", "same", "view", "told", "strided", "next"
        assert rest == [f"{name}: right [soon]" for name in names], lines
        for line in (lines[1], lines[7]):
            assert "processes plan different things in `chosen`" in line and line.endswith("[soon]"), lines
            for rank in range(2):
                assert f"rank {rank} dispatches consume(window [1, 8] fp32 of buffer 0, y[{rank}, 0, 0]" in line, lines
            assert line.count("to rank 0 at ") == line.count("agreement_worker.py:") == 2, lines
        for line in (*lines[2:4], *lines[8:10]):
            assert "rank 0 does nothing more | " in line and "rank 1 dispatches publish(x[0, 0, 0]" in line, lines
        for line in (lines[5], lines[11]):
            for rank in range(2):
                assert f"rank {rank} lays out buffer 0 of {32 << rank} bytes on ranks [0, 1]" in line, lines


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_dtensors_that_differ_between_processes_are_shown_on_all(tmp_path: Path, transport: str) -> None:
    said = said_by(2, tmp_path, transport, "shards")
    passed = {
        "longer": "[4, 1, 8] float32 placed S(0), gathered", "whole": "[2, 1, 8] float32 placed R, gathered",
        "columns": "[2, 1, 8] float32 placed S(2), gathered", "recorded": "[2, 1, 8] float32 placed S(0), gathered",
    }  # fmt: skip
    for lines in said:
        assert len(lines) == 15 and all(line.endswith("[soon]") for line in lines), lines
        told = dict(line.split(": ", 1) for line in lines[::2])
        assert lines[1::2] == ["next: right [soon]"] * 7 and told["gathered"] == told["next"] == "right [soon]", lines
        for name, wanted in passed.items():
            assert "rank 0 passed a DTensor [2, 1, 8] float32 placed S(0), a row" in told[name], lines
            assert f"rank 1 passed a DTensor {wanted}" in told[name], lines
        assert "rank 1 passed [2, 1, 8] float32" in told["plain"], lines
        assert "`x` expects dtype fp32, got fp64" in told["doubles"], lines


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_process_that_comes_late_is_named_and_the_next_call_works(tmp_path: Path, transport: str) -> None:
    for lines in said_by(3, tmp_path, transport, "late"):
        assert lines[0].startswith("first: ExecutionError ") and "rank 2 has not come: rank " in lines[0], lines
        assert lines[0].endswith("[soon]") and lines[1:] == ["next: right [soon]", "again: right [soon]"], lines


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_groups_are_left_and_made_anew_in_one_process(tmp_path: Path, transport: str) -> None:
    for lines in said_by(2, tmp_path, transport, "anew"):
        wanted = ["found: right [soon]", "made: right [soon]", "made: right [soon]"]
        assert lines == 3 * wanted, lines


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_process_that_is_stopped_has_not_ended_and_the_next_call_works(tmp_path: Path, transport: str) -> None:
    for rank, lines in enumerate(said_by(3, tmp_path, transport, "stopped")):
        assert lines[0] == "first: right [soon]" and lines[2] == "next: right [soon]", lines
        assert "rank 1 has not come: rank " in lines[1] and "ended" not in lines[1], lines
        assert "failed: rank 1" in lines[1] if rank == 1 else True, lines


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_calls_of_several_threads_of_a_process_take_turns(tmp_path: Path, transport: str) -> None:
    for lines in said_by(2, tmp_path, transport, "threads"):
        assert len(lines) == 11, lines
        told = [lines.pop(3), *lines[6:9]]
        assert lines[:6] + lines[9:] == 3 * ["first: right [soon]"] + 3 * ["behind: right [soon]"] + [
            "last: right [soon]"
        ], lines
        assert all("`x`" in line and "9" in line and line.endswith("[soon]") for line in told), told
