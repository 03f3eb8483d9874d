"""Releases and CI: the changelog is gathered, the version has one home, and CI runs what the Makefile says."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

import tilewright

FRAGMENTS = {
    "README.md": "About fragments.\n",
    "tanh.added.md": "`pl.tanh` is\nthe hyperbolic tangent.\n",
    "abs.added.md": "`pl.abs` drops signs.\n",
    "loads.fixed.md": "Loads end where tensors do.\n",
}
GATHERED = """# Changelog

## 0.2.0 (2030-01-02)

### Added

- `pl.abs` drops signs.
- `pl.tanh` is the hyperbolic tangent.

### Fixed

- Loads end where tensors do.
"""
MAKEFILE = "wheel:\n\t@mkdir dist && touch dist/tilewright.whl\n"


def git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.check_output(["git", *who, *words], cwd=root, text=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository that can be released."""
    files = {f"changelog.d/{name}": text for name, text in FRAGMENTS.items()}
    files |= {"src/tilewright/version.py": '__version__ = "0.1.0"\n', "Makefile": MAKEFILE, ".gitignore": "dist\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "a change")


def release(root: Path, version: str, today: str = "2030-01-02") -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys, datetime; sys.path.insert(0, {str(ROOT / '.ci')!r}); import release\n"
        f"class date:\n    today = staticmethod(lambda: datetime.date.fromisoformat({today!r}))\n"
        f"release.date = date; sys.exit(release.main([{version!r}]))"
    )
    return subprocess.run([sys.executable, "-c", code], cwd=root, text=True, capture_output=True)


def test_a_release_gathers_the_changelog_sets_the_version_builds_the_wheel_and_says_what_is_next(root: Path) -> None:
    done = release(root, "0.2.0")
    assert done.returncode == 0, done.stderr
    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == GATHERED
    assert (root / "src/tilewright/version.py").read_text(encoding="utf-8") == '__version__ = "0.2.0"\n'
    assert [path.name for path in (root / "changelog.d").iterdir()] == ["README.md"]
    assert (root / "dist/tilewright.whl").exists() and "git tag -am 0.2.0 v0.2.0" in done.stdout


def test_the_newest_release_comes_first(root: Path) -> None:
    release(root, "0.2.0")
    (root / "changelog.d/sin.removed.md").write_text("`pl.sin` is gone.", encoding="utf-8")
    (root / "dist/tilewright.whl").unlink()
    (root / "dist").rmdir()
    commit(root)
    assert release(root, "0.3.0", "2030-02-03").returncode == 0
    newest = "# Changelog\n\n## 0.3.0 (2030-02-03)\n\n### Removed\n\n- `pl.sin` is gone.\n"
    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == newest + GATHERED.removeprefix("# Changelog\n")


def test_the_version_in_the_tree_can_be_the_first_one_released(root: Path) -> None:
    assert release(root, "0.1.0").returncode == 0


@pytest.mark.parametrize(
    ("version", "added", "reason"),
    [
        ("", None, "VERSION=x.y.z names the release, got ''; the last one is 0.1.0"),
        ("1.0", None, "VERSION=x.y.z names the release"),
        ("0.0.9", None, "0.0.9 comes before 0.1.0"),
        ("0.2.0", "notes.txt", "the tree is not clean:\n?? notes.txt"),
    ],
)
def test_a_release_that_cannot_be_made_changes_nothing(
    root: Path, version: str, added: str | None, reason: str
) -> None:
    if added is not None:
        (root / added).touch()
    before = git(root, "status", "--porcelain")
    done = release(root, version)
    assert done.returncode == 1 and reason in done.stderr
    assert git(root, "status", "--porcelain") == before


@pytest.mark.parametrize(
    ("name", "reason"), [("sin.md", "SLUG.KIND.md, .*: sin.md"), ("sin.new.md", "SLUG.KIND.md, .*: sin.new.md")]
)
def test_a_fragment_of_no_kind_is_named(root: Path, name: str, reason: str) -> None:
    (root / "changelog.d" / name).touch()
    commit(root)
    done = release(root, "0.2.0")
    assert done.returncode == 1 and re.search(reason, done.stderr)


def test_a_release_without_fragments_and_one_made_before_are_refused(root: Path) -> None:
    release(root, "0.2.0")
    commit(root)
    assert "has no fragments" in release(root, "0.3.0").stderr
    (root / "changelog.d/sin.removed.md").touch()
    commit(root)
    assert "has a section 0.2.0 already" in release(root, "0.2.0").stderr


def load_release() -> Any:
    spec = spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_fragment_of_ours_is_of_a_kind() -> None:
    known = load_release()
    fragments = [path for path in (ROOT / known.FRAGMENTS).glob("*.md") if path.name != "README.md"]
    assert not [path.name for path in fragments if known.kind_of(path) not in known.KINDS]
    assert known.current(ROOT) == tilewright.__version__


WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


def test_hosted_ci_runs_make_and_ci_run_and_nothing_of_its_own() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    everything, *chosen = re.findall(r"^ +- run: (.+)$", WORKFLOW, re.MULTILINE)
    assert everything == ".ci/run"
    for command in chosen:
        make, *wanted = (word for word in command.split("${{")[0].split() if "=" not in word)
        assert make == "make" and set(wanted) <= set(targets), command


def test_hosted_ci_tries_the_oldest_python_and_every_kind_of_tests() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest = re.search(r'requires-python = ">=(3\.\d+)"', project)
    assert oldest is not None and f'python: ["{oldest[1]}", ' in WORKFLOW
    (tests,) = re.findall(r"tests: \[(.+)\]", WORKFLOW)
    assert tests.split(", ") == re.findall(r"^(test(?:-[\w-]+)?) = \[", project, re.MULTILINE)
