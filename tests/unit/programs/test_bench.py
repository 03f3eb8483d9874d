"""Benchmarks: what is timed, and how it is shown."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from unit.programs.programs import HALVES, program_of, rows

from tilewright import ir
from tilewright.programs.timings import Timings
from tilewright.runtime import BenchmarkStats, RunConfig, benchmark

X = rows(16)
KNOWN = BenchmarkStats((4.0, 1.0, 3.0, 2.0, 10.0), Timings((1.0, 1.0, 1.0, 1.0, 1.0)), "Known")


def compiled(platform: str = "cpu") -> Any:
    return ir.compile(program_of(HALVES), platform=platform)


def test_a_program_is_timed_as_a_call_and_by_itself() -> None:
    stats = benchmark(compiled(), [X, 0, np.zeros_like(X)], rounds=20)
    assert stats.samples == len(stats.host_wall_us) == len(stats.device_wall_us) == 20
    assert min(stats.device_wall_us) > 0 and not stats.all_zero_device


def test_the_inputs_alone_will_do() -> None:
    assert benchmark(compiled(), [X, 0], rounds=2).samples == 2


def test_without_machine_code_only_calls_are_timed() -> None:
    stats = benchmark(compiled("interpret"), [X, 0], rounds=2)
    assert stats.all_zero_device and stats.device_wall_us == [0.0, 0.0]
    assert stats.per_round("effective") == stats.host_wall_us and len(stats.invocations[0].spans) == 1


def test_warming_up_is_not_counted() -> None:
    calls: list[int] = []
    stats = benchmark(calls.append, [1], rounds=5, warmup=2)
    assert (len(calls), stats.samples, stats.name) == (7, 5, "append")


@pytest.mark.parametrize(("rounds", "warmup"), [(0, 3), (1, -1)])
def test_rounds_that_cannot_be_are_refused(rounds: int, warmup: int) -> None:
    with pytest.raises(ValueError, match="needs one round or more"):
        benchmark(print, [], rounds=rounds, warmup=warmup)


def test_the_numbers_are_those_of_statistics() -> None:
    assert (KNOWN.min, KNOWN.median, KNOWN.mean, KNOWN.max) == (1, 3, 4, 10)
    assert KNOWN.stdev == pytest.approx(np.std([4, 1, 3, 2, 10], ddof=1))  # pyright: ignore[reportUnknownMemberType]
    assert KNOWN.spread == pytest.approx((4 - 2) / 3)  # pyright: ignore[reportUnknownMemberType]
    assert (KNOWN.device_us_min, KNOWN.device_us_mean, KNOWN.device_us_max, KNOWN.device_us_stdev) == (1, 1, 1, 0)


def test_one_run_has_no_spread() -> None:
    assert (Timings((2.0,)).stdev, Timings((2.0,)).spread) == (0, 0)


def test_the_numbers_read_as_a_table() -> None:
    assert str(KNOWN) == (
        "Known, us   min  median  mean    max  stdev  spread  samples\n"
        "call       1.00    3.00  4.00  10.00   3.54   66.7%        5\n"
        "program    1.00    1.00  1.00   1.00   0.00    0.0%        5"
    )


def test_rich_draws_the_same_table() -> None:
    console = Console(file=io.StringIO(), width=100)
    console.print(KNOWN)
    text = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    assert "Known, microseconds" in text and "66.7%" in text


def test_the_tree_says_what_a_call_consists_of(capsys: pytest.CaptureFixture[str]) -> None:
    KNOWN.print_tree()
    assert capsys.readouterr().out == "call 3.00 us\n├─ program 1.00 us (33%)\n└─ around it 2.00 us (67%)\n"


def test_rounds_are_traces_of_a_call_and_its_program() -> None:
    assert KNOWN.rounds == len(KNOWN.invocations) == len(KNOWN.rounds_dispatches) == 5
    first = KNOWN.invocations[0]
    assert (first.host_wall_us, first.device_wall_us, first.effective_us, first.task_name) == (4, 1, 1, "Known")
    assert [(span.name, span.depth, span.is_device, span.dur) for span in first.spans] == [
        ("call", 0, False, 4000),
        ("program", 1, True, 1000),
    ]
    assert first.root().dur_us == 4 and list(first.by_name()) == ["call", "program"]


def test_times_are_had_by_round_rank_and_dispatch() -> None:
    assert KNOWN.per_round() == KNOWN.per_round("union") == [1.0] * 5
    assert KNOWN.per_rank("host") == {0: KNOWN.host_wall_us} and KNOWN.per_dispatch("host") == [KNOWN.host_wall_us]
    assert (list(KNOWN.dispatch_groups), KNOWN.dispatch_tasks) == (["Known"], ["Known"])
    assert not KNOWN.fallback_flattened and not KNOWN.unstable_dispatch_slots
    with pytest.raises(ValueError, match="metric must be one of device, host, effective, union, got 'wall'"):
        KNOWN.per_round("wall")


def test_a_tree_is_of_one_call_or_of_their_average() -> None:
    assert KNOWN.format_tree(4) == "call 10.00 us\n  program 1.00 us"
    assert KNOWN.format_tree(4, us=False) == "call 10000 ns\n  program 1000 ns"
    assert KNOWN.format_mean_tree() == "call 4.00 us\n  program 1.00 us"
    file = io.StringIO()
    KNOWN.print_tree(file=file)
    assert file.getvalue() == KNOWN.format_tree() + "\n"


def test_a_configuration_has_the_platform() -> None:
    with pytest.raises(ValueError, match="takes a config, or a platform and a device_id"):
        benchmark(print, [], config=RunConfig(), platform="a5")


def test_equal_times_give_equal_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg"):
        KNOWN.plot(tmp_path / name)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "<svg" in text and "call: median 3.00 us" in text and "program: median 1.00 us" in text


def test_a_missing_matplotlib_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="plotting a benchmark needs matplotlib: pip install matplotlib"):
        KNOWN.plot(tmp_path / "a.svg")
