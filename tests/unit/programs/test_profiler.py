"""Compile profilers: the stages of what is compiled inside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from unit.programs.programs import HALVES, program_of

from tilewright import ir
from tilewright.programs.profiler import CompileProfiler, StageRecord, get_active_profiler


def test_programs_compiled_inside_add_their_stages() -> None:
    with CompileProfiler() as profiler:
        assert get_active_profiler() is profiler is CompileProfiler.current()
        with profiler.stage("all of it"):
            compiled = ir.compile(program_of(HALVES))
    assert get_active_profiler() is None
    (whole,) = profiler.records
    (program,) = whole.children
    assert (whole.name, program.name) == ("all of it", "Halves")
    assert [stage.name for stage in program.children] == [stage.name for stage in compiled.profile.records]
    assert whole.duration >= program.duration >= max(stage.duration for stage in program.children) > 0
    assert profiler.total_seconds == whole.duration


def test_stages_read_as_lines_and_as_json(tmp_path: Path) -> None:
    profiler = CompileProfiler()
    profiler.add_stage_record(StageRecord("passes", 1.0, 1.5, (StageRecord("ConvertToSSA", 1.0, 1.125),)))
    assert profiler.summary() == (
        "passes                           500.000 ms 100.0 %\n"
        "  ConvertToSSA                   125.000 ms  25.0 %\n"
        "total                            500.000 ms 100.0 %\n"
    )
    profiler.write_report(tmp_path / "report")
    assert json.loads((tmp_path / "report" / "pipeline_profile.json").read_text()) == profiler.to_dict()
    assert profiler.to_json(tmp_path / "all.json", indent=1) == (tmp_path / "all.json").read_text()


def test_a_stage_that_fails_is_timed() -> None:
    profiler = CompileProfiler()
    with pytest.raises(KeyError), profiler.stage("broken"):
        raise KeyError
    assert [record.name for record in profiler.records] == ["broken"]
