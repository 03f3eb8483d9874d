"""The bisect command: the pass that changes an answer, and as little of a program as shows it."""

from __future__ import annotations

import json
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import GOLDEN, Golden
from property.campaigns import text_of

from tilewright.core.program import Program
from tilewright.frontend.programs import as_program
from tilewright.frontend.text import parse
from tilewright.passes import manager
from tilewright.passes.pipeline import DEFAULT, Pass
from tilewright.programs.smaller_texts import smaller, statement_count
from tilewright.programs.validate import WrongPassError
from tilewright.tools import cli

KERNELS = """
import tilewright.language as pl

@pl.jit
def mixed(x: pl.Tensor[[16, 8], pl.FP32], y: pl.Tensor[[16, 8], pl.FP32], out: pl.Out[pl.Tensor[[16, 8], pl.FP32]]):
    for r in pl.parallel(0, 16, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [r, 0], [4, 8])
            b = pl.load(y, [r, 0], [4, 8])
            c = pl.exp(a) + b
            d = pl.abs(c) * 2.0
            e = pl.maximum(d, a)
            pl.store(e - c, [r, 0], out)
    return out
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    return path


def broken(program: Program) -> Program:
    """Take absolute values for the numbers themselves."""
    return as_program(parse(re.sub(r"pl\.(tile|tensor)\.abs\(", r"pl.\1.neg(", str(program)), {}))


@pytest.fixture
def mistaken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler whose pass DeadCode is wrong about absolute values."""
    wrong = [replace(p, run=broken) if p.name == "DeadCode" else p for p in DEFAULT]
    monkeypatch.setattr(manager, "DEFAULT", tuple(wrong))


def test_the_pass_that_is_wrong_is_named_and_what_shows_it_is_written(
    mistaken: None, kernels: Path, capsys: pytest.CaptureFixture[str], golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kernels.parent)
    assert cli.main(["bisect", str(kernels), "--passes-only"]) == 1
    written = Path("bisected.py").read_text(encoding="utf-8")
    golden("bisect.txt", f"{capsys.readouterr().err}\n{written}", GOLDEN / "commands")
    with pytest.raises(WrongPassError, match="^DeadCode changed the answer"):
        runpy.run_path("bisected.py", run_name="__main__")


def test_a_file_that_shows_a_mistake_runs_once_it_is_mended(
    kernels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(kernels.parent)
        patch.setattr(manager, "DEFAULT", (*DEFAULT, Pass("Last", broken)))
        assert cli.main(["bisect", str(kernels), "--passes-only", "--seconds", "0", "--json"]) == 1
        found = json.loads(capsys.readouterr().out)
    assert (found["wrong"], found["statements"][0]) == ("Last", found["statements"][1])
    runpy.run_path(str(kernels.with_name("bisected.py")), run_name="__main__")


def test_stages_that_agree_are_counted(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bisect", str(kernels)]) == 0
    count = len(DEFAULT) + 2
    assert capsys.readouterr().out == f"mixed: {count} stages give the same answer, from frontend to native code\n"


def test_random_programs_are_bisected_by_their_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "random.py"
    path.write_text(text_of("passes", 3), encoding="utf-8")
    assert cli.main(["bisect", str(path), "--passes-only"]) == 0
    assert "stages give the same answer" in capsys.readouterr().out


def test_smaller_texts_are_without_one_statement_or_have_a_body_for_it() -> None:
    text = "def f(x):\n    for i in pl.range(4):\n        y = pl.add(x, i)\n        z = y\n    return x\n"
    found = list(smaller(text))
    assert statement_count(text) == 4
    assert found[0] == "def f(x):\n    return x\n"
    assert "def f(x):\n    i = 0\n    y = pl.add(x, i)\n    z = y\n    return x\n" in found
    assert "def f(x):\n    for i in pl.range(4):\n        y = x\n        z = y\n    return x\n" in found
