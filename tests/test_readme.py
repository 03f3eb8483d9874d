"""Pages with code: what they show is what happens."""

from __future__ import annotations

import linecache
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pages import ROOT, Block, blocks

from tilewright.backends import interface
from tilewright.errors import TilewrightError
from tilewright.tools import cli

README = ROOT / "README.md"
PAGES = (
    README,
    ROOT / "docs" / "cache.md",
    ROOT / "docs" / "checking.md",
    ROOT / "docs" / "compiled-programs.md",
    ROOT / "docs" / "cuda.md",
    ROOT / "docs" / "debugging.md",
    ROOT / "docs" / "distributed.md",
    ROOT / "docs" / "exploring.md",
    ROOT / "docs" / "profiling.md",
    ROOT / "docs" / "pto.md",
    ROOT / "docs" / "pypto.md",
    ROOT / "docs" / "torch-operators.md",
    ROOT / "docs" / "training.md",
    ROOT / "docs" / "tuning.md",
    ROOT / "docs" / "warm-calls.md",
    ROOT / "docs" / "writing-a-back-end.md",
    ROOT / "docs" / "writing-kernels.md",
)

ELSEWHERE = {"adding-an-op.md", "gallery.md", "language.md", "life-of-a-kernel.md"}
"""Pages whose blocks other tests hold against the code: their ops, files and stages."""


def test_every_page_with_code_is_run() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/*.md")]
    coded = {page.name for page in pages if any(block.runs for block in blocks(page))}
    assert coded == {page.name for page in PAGES} | ELSEWHERE


def test_lines_of_a_file_are_in_it() -> None:
    for page in PAGES:
        for block in (block for block in blocks(page) if block.source):
            file = (ROOT / block.source).read_text(encoding="utf-8").replace(": Any", "")
            lines = [line.partition("  # ")[0] for line in block.text.splitlines()]
            assert [line for line in lines if line not in file] == [], (page.name, block.source)


def run(block: Block, number: int, names: dict[str, object]) -> str | None:
    """Run a block in a file of its own in the current folder; return the message of a mistake."""
    name = block.filename.replace("readme", f"readme_{number}")
    Path(name).write_text(block.text, encoding="utf-8")
    linecache.cache.pop(name, None)  # files of other tests have this name, too
    try:
        exec(compile(block.text, name, "exec", dont_inherit=True), names)
    except TilewrightError as error:
        return str(error)
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_runs_and_shows_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interface, "_backends", dict(interface._backends))  # pyright: ignore[reportPrivateUsage]
    module = ModuleType(Path(next(block.filename for block in blocks(page) if block.runs)).stem)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    shown = ""
    for number, block in enumerate(blocks(page)):
        if block.runs:
            assert shown == "", "the block above prints something the page does not show"
            mistake = run(block, number, vars(module))
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
    printed = capsys.readouterr().out
    assert printed
    if printed.strip().endswith(".html"):
        (ROOT / printed.strip()).unlink()


def test_every_make_target_exists() -> None:
    named = re.findall(r"(?:^    |`)make ([a-z]+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"demo", "test"} <= set(named) <= set(targets)
