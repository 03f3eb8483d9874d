"""Logs: what is said about compiling and running, and from which level on."""

from __future__ import annotations

import logging
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


@pytest.fixture
def messages() -> Iterator[list[str]]:
    """What is logged during a test; pytest's own fixture is off, with which all other tests would wait for loggers."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    yield found
    logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize(
    ("name", "number"), [("debug", 10), ("Info", 20), ("TIMING", 25), ("warn", 30), ("error", 40), ("null", 60), (7, 7)]
)
def test_a_level_is_a_number_or_a_name(name: int | str, number: int) -> None:
    configure_log(name)
    assert log_level() == number


def test_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match="level must be a number or one of debug, info, timing, warn"):
        configure_log("loud")


def test_compiling_is_logged_where_it_was_asked_for(messages: list[str]) -> None:
    ir.compile(program_of(HALVES))
    assert not messages
    set_log_level(LogLevel.TIMING)
    ir.compile(program_of(HALVES))
    assert len(messages) == 1 and messages[0].startswith("compiled Halves in ")


def test_running_is_logged_apart_unless_both_are_said(messages: list[str]) -> None:
    configure_log("info")
    compiled = ir.compile(program_of(HALVES))
    ChipWorker().run(compiled, np.ones((16, 64), np.float32), 0)
    assert messages == ["<ChipWorker cpu:0, open> has run program number 1"]
    configure_log("info", sync_pypto=True)
    ir.compile(program_of(HALVES))
    assert len(messages) == 2
