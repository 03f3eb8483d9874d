"""The PTO example: its text and its traced body compute what torch does."""

from __future__ import annotations

import runpy

import pytest
from examples.loading import EXAMPLES


def test_it_runs_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "pto" / "softmax.py"), run_name="__main__")
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("softmax: ") and second.startswith("traced: ")
