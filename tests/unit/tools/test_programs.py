"""Programs on a command line: files of `@pl.program` classes, one of several, and arguments that do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pages import ROOT

from tilewright.tools import cli

PROGRAMS = """
import tilewright.language as pl

M = pl.dynamic("M")

@pl.program
class twice:
    @pl.function
    def main(self, x: pl.Tensor[[M, 16], pl.FP32], y: pl.Tensor[[M, 16], pl.FP32],
             out: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [0, 0], [16, 16]) * 2.0, [0, 0], out)
        return out

@pl.program
class thrice:
    @pl.function
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [0, 0], [16, 16]) * 3.0, [0, 0], out)
        return out
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "programs.py"
    path.write_text(PROGRAMS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return str(path)


@pytest.mark.parametrize("command", ["show", "explore", "bench", "access"])
def test_arguments_that_do_not_fit_a_program_are_refused(
    command: str, programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for said, expected in [
        (["thrice", "x=8x8"], "`x` expects shape [16, 16], got [8, 8]"),
        (["thrice", "x=fp16:16x16"], "`x` expects fp32, got fp16"),
        (["twice", "x=16x16", "y=8x16"], "`y` expects shape [16, 16], got [8, 16]"),
        (["twice", "M=16", "y=16"], "`y` expects shape [16, 16], got [16]"),
    ]:
        assert cli.main([command, f"{programs}:{said[0]}", *said[1:]]) == 1
        assert capsys.readouterr().err.strip() == expected


def test_one_of_several_programs_is_picked_by_its_name(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", programs]) == 1
    assert "help: pick one, as in FILE:twice" in capsys.readouterr().err
    assert cli.main(["show", f"{programs}:thrice", "x=16x16"]) == 0
    assert "class thrice" in capsys.readouterr().out
    assert cli.main(["bench", f"{programs}:thrice", "--rounds", "2"]) == 0
    assert cli.main(["show", f"{programs}:thrise"]) == 1
    assert "no kernel or program is called thrise\n    help: did you mean thrice?" in capsys.readouterr().err


SOFTMAX = str(ROOT / "examples/pto/softmax.pto")
ROWS = ("x=32x128", "out=fp32:32x128", "rows=32")


@pytest.mark.parametrize(
    "command", [["bench", "--rounds", "2"], ["access"], ["explain"], ["bisect"]], ids=lambda c: c[0]
)
def test_pointers_of_pto_text_take_any_shape(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    name, *rest = command
    assert cli.main([name, SOFTMAX, *ROWS, *rest]) == 0
    assert "softmax" in capsys.readouterr().out or name == "access"


def test_pointers_of_pto_text_that_nobody_describes_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", SOFTMAX, "x=32x128", "rows=32"]) == 1
    assert "only a call tells how far `out` reaches\n    help: say out=16x128" in capsys.readouterr().err


def test_a_call_of_pto_text_is_explained_as_it_will_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", SOFTMAX, *ROWS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["call_seconds"] < 2 * found["seconds"] + 1e-5


@pytest.mark.parametrize(
    ("text", "said"), [("fp8:4x4", "did you mean fp8e5m2 or fp8e8m0 or fp8e4m3fn?"), ("fb32:4x4", "did you mean fp32?")]
)
def test_names_that_begin_so_are_the_nearest(
    text: str, said: str, programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", f"{programs}:thrice", f"x={text}"]) == 1
    assert said in capsys.readouterr().err
