"""Fuzzing: every campaign works, and what one finds is told with the way to see it again."""

from __future__ import annotations

import sys

import pytest
from property import fuzz
from property.campaigns import CAMPAIGNS
from property.fuzz import Failure, Tally, Worker, attempt, fuzzed, main


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_campaign_makes_an_attempt(name: str) -> None:
    assert attempt(name, 4711) == ""


def wrong(number: int) -> None:
    raise ValueError(f"{number} is no good")


def test_a_failure_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(CAMPAIGNS, "wrong", wrong)
    assert main(["wrong", "--number", "3"]) == 1
    shown = capsys.readouterr().out
    assert "ValueError: 3 is no good" in shown
    assert 'to see it again: make fuzz ARGS="wrong --number 3"' in shown


def test_a_campaign_that_is_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "no campaign is called nothing; there are op, program" in capsys.readouterr().err


class Scripted(Worker):
    """A worker whose process runs a script."""

    def __init__(self, tally: Tally, script: str) -> None:
        super().__init__(tally, 10, 2)
        self.script = script

    def command(self) -> list[str]:
        return [sys.executable, "-c", f"number, step = {self.next}, {self.step}\n{SAYS}\n{self.script}"]


SAYS = """
import json, os, time
def say(number, state=None):
    print(json.dumps(["some", number, state]), flush=True)
"""


def found(script: str) -> tuple[dict[str, int], list[Failure]]:
    """Return how many attempts were made when one or two have failed, and those."""
    tally = Tally(["some"])
    return tally.tried, fuzzed(tally, [Scripted(tally, script)], 60)


def test_a_process_that_ends_is_a_failure_of_its_attempt_and_another_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "MOST", 2)
    tried, failures = found("""
if number > 10:
    say(number), say(number, "odd"), time.sleep(60)
say(number), say(number, ""), say(number + step)
from property.native import named
with named("the text", "an attempt"):
    os.abort()
""")
    assert [(failure.campaign, failure.number) for failure in failures] == [("some", 12), ("some", 14)]
    assert "its process ended with code -6" in failures[0].what and "# an attempt\nthe text" in failures[0].what
    assert failures[1].what == "odd"
    assert tried == {"some": 2}


def test_an_attempt_that_hangs_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "MOST", 1)
    monkeypatch.setattr(fuzz, "LIMIT", 3)
    _, (failure,) = found("say(number), time.sleep(60)")
    assert failure.number == 10 and "it took more than 3 s" in failure.what


def test_processes_that_cannot_start_are_no_success() -> None:
    _, (failure,) = found("import nonsense")
    assert "no attempt could be made" in failure.what and "nonsense" in failure.what
