"""The screen: highlighted on a terminal, plain elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from tilewright.tools import screen

SHOWN: dict[str, Callable[[], None]] = {
    "code": lambda: screen.code("x = 1\n"),
    "titled": lambda: screen.titled("Simplify", "fewer ops", "x = 1\n"),
    "markdown": lambda: screen.markdown("**x** is 1"),
    "heading": lambda: screen.heading("memory", "tiles and tensors"),
    "columns": lambda: screen.columns([("x", "is 1")]),
}
everything = pytest.mark.parametrize("show", SHOWN.values(), ids=SHOWN)


@everything
def test_plain_text_has_no_escapes(show: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    show()
    text = capsys.readouterr().out
    assert "x" in text or "memory" in text
    assert "\x1b" not in text


@everything
def test_a_terminal_gets_colours(
    show: Callable[[], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show()
    assert "\x1b[" in capsys.readouterr().out


def test_a_narrow_terminal_loses_no_word(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setenv("TERM", "dumb")
    screen.columns([("processors", "this process may use them, of so many there are")])
    assert capsys.readouterr().out.split() == "processors this process may use them, of so many there are".split()


def test_a_warning_is_shown_once_and_by_its_own_text(capsys: pytest.CaptureFixture[str]) -> None:
    with screen.warned_once():
        for line in (1, 2, 2):
            warnings.simplefilter("always", UserWarning)  # packages that are loaded late change filters, too
            warnings.warn_explicit("turns race", UserWarning, "kernel.py", line)
    assert capsys.readouterr().err == "UserWarning: turns race\n"
