"""The front page: what it shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pages import ROOT, Block, blocks

from tilewright.errors import KernelError
from tilewright.tools import cli

README = ROOT / "README.md"


def run(block: Block, number: int, names: dict[str, object]) -> str | None:
    """Run a block in a file of its own in the current folder; return the message of a kernel's mistake."""
    name = block.filename.replace("readme", f"readme_{number}")
    Path(name).write_text(block.text, encoding="utf-8")
    try:
        exec(compile(block.text, name, "exec"), names)
    except KernelError as error:
        return str(error)
    return None


def test_every_block_runs_and_shows_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    shown = ""
    for number, block in enumerate(blocks(README)):
        if block.runs:
            assert shown == "", "the block above prints something the page does not show"
            mistake = run(block, number, names)
            shown = capsys.readouterr().out.rstrip() if mistake is None else mistake
        elif block.is_output:
            assert block.text.rstrip() == shown
            shown = ""
    assert shown == ""


def commands(program: str) -> list[list[str]]:
    lines = [line for block in blocks(README) if block.info == "sh" for line in block.text.splitlines()]
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words[0] == program]


@pytest.mark.parametrize("words", commands("tilewright"), ids=" ".join)
def test_every_command_works(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.main(words[1:]) == 0
    assert capsys.readouterr().out


def test_every_make_target_exists() -> None:
    named = re.findall(r"(?:^    |`)make ([a-z]+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"demo", "test"} <= set(named) <= set(targets)
