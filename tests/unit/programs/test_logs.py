"""Logs: what is said about compiling and running, and from which level on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from unit.programs.programs import HALVES, program_of

from tilewright import ir
from tilewright.programs.logs import LogLevel, set_log_level
from tilewright.runtime import ChipWorker, configure_log, log_level


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    yield
    configure_log("warn", sync_pypto=True)


@pytest.mark.parametrize(
    ("name", "number"), [("debug", 10), ("Info", 20), ("TIMING", 25), ("warn", 30), ("error", 40), ("null", 60), (7, 7)]
)
def test_a_level_is_a_number_or_a_name(name: int | str, number: int) -> None:
    configure_log(name)
    assert log_level() == number


def test_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match="level must be a number or one of debug, info, timing, warn"):
        configure_log("loud")


def test_compiling_is_logged_where_it_was_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    ir.compile(program_of(HALVES))
    assert not caplog.messages
    set_log_level(LogLevel.TIMING)
    ir.compile(program_of(HALVES))
    assert len(caplog.messages) == 1 and caplog.messages[0].startswith("compiled Halves in ")


def test_running_is_logged_apart_unless_both_are_said(caplog: pytest.LogCaptureFixture) -> None:
    configure_log("info")
    compiled = ir.compile(program_of(HALVES))
    ChipWorker().run(compiled, np.ones((16, 64), np.float32), 0)
    assert caplog.messages == ["<ChipWorker cpu:0, open> has run program number 1"]
    configure_log("info", sync_pypto=True)
    ir.compile(program_of(HALVES))
    assert len(caplog.messages) == 2
