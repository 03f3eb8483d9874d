"""The documentation: generated pages are fresh, links lead somewhere, and adding an op is as short as we say."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, blocks, links

from tilewright.tools import docs

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


def test_generated_pages_say_what_the_code_says(capsys: pytest.CaptureFixture[str]) -> None:
    status = docs.main(["--check", "--output", str(DOCS)])
    assert status == 0, capsys.readouterr().err


def test_a_stale_page_is_shown_as_a_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs.write(tmp_path)
    page = tmp_path / "language.md"
    page.write_text(page.read_text(encoding="utf-8").replace("# The language", "# Language"), encoding="utf-8")
    assert docs.main(["--check", "--output", str(tmp_path)]) == 1
    assert "-# Language\n+# The language\n" in capsys.readouterr().err


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    assert not [target for target in links(page) if not (page.parent / target).exists()]


def test_pages_and_sources_name_files_that_are_there() -> None:
    tracked = {
        f"/{path.relative_to(ROOT).as_posix()}"
        for top in ("src", "tests", "docs", "examples", "bench", ".ci")
        for path in (ROOT / top).rglob("*.py")
    }
    texts = [*PAGES, *(ROOT / "src").rglob("*.py")]
    named = {
        (text.name, path)
        for text in texts
        for path in re.findall(r"(?<![\w.])(?:[a-z_]+/)+[a-z_]+\.py\b", text.read_text(encoding="utf-8"))
    }
    assert not [
        f"{text} names {path}" for text, path in named if not any(each.endswith(f"/{path}") for each in tracked)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_no_machine(page: Path) -> None:
    assert not re.findall(r"(?<![\w.])/(?:home|root|tmp|work|Users|usr|opt)\b\S*", page.read_text(encoding="utf-8"))


class Copy:
    """A copy of the sources and the op tests, with the op of `adding-an-op.md` in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
        shutil.copytree(ROOT / "tests" / "ops", folder / "tests" / "ops", ignore=ignored)
        for name in ("pyproject.toml", "tests/conftest.py", "tests/soon.py"):
            shutil.copy(ROOT / name, folder / name)
        self.declaration = next(block.text for block in blocks(DOCS / "adding-an-op.md") if block.runs)
        (function,) = ast.parse(self.declaration).body
        assert isinstance(function, ast.FunctionDef)
        self.op = function.name
        self.declare(folder / "src" / "tilewright" / "ops" / "elementwise.py")

    def declare(self, path: Path) -> None:
        """Add the declaration to a file and its name to `__all__`."""
        text = path.read_text(encoding="utf-8")
        exported = re.search(r"__all__ = (\[.*?\])", text, re.DOTALL)
        assert exported is not None
        names: list[str] = ast.literal_eval(exported[1])
        text = text.replace(exported[1], repr(sorted([*names, self.op])))
        path.write_text(f"{text}\n\n{self.declaration}", encoding="utf-8")

    def python(self, *arguments: str) -> str:
        """Return what a Python that uses the copy prints; it must succeed."""
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=environment, text=True, capture_output=True
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def pytest(self, *arguments: str) -> str:
        options = ("-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist")
        return self.python("-m", "pytest", *options, *arguments, "tests/ops")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("copy"))


def test_an_added_op_is_in_the_language(copy: Copy) -> None:
    found = copy.python("-c", f"import tilewright.language as p; print(*(m.{copy.op} for m in (p, p.tile, p.tensor)))")
    assert found.count(f"<function {copy.op} at") == 3


def test_an_added_op_is_in_the_docs_and_on_the_command_line(copy: Copy) -> None:
    copy.python("-m", "tilewright.tools.docs")
    page = (copy.folder / "docs" / "language.md").read_text(encoding="utf-8")
    entry = copy.python("-m", "tilewright", "ops", copy.op)
    assert f"pl.{copy.op}(x: X) -> X" in entry
    assert entry.strip() in page


@pytest.mark.slow
def test_an_added_op_arrives_tested(copy: Copy) -> None:
    of_all = ("finds_its_function", "docstring_opens", "is_annotated", "outside_a_kernel_is", "aliases_or_writes")
    passed = copy.pytest("-v", "-k", " or ".join((copy.op, *of_all))).splitlines()
    assert sum(" PASSED" in line and f".{copy.op}" in line for line in passed) > 10
    assert all(any(" PASSED" in line and name in line for line in passed) for name in of_all)
