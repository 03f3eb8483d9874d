"""Refusals: every message names the parameter, the kernel, the file and the line."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import Golden
from unit.pto.jit.rejected import COMPILATIONS, DECLARATIONS, HEAD, LAUNCHES


def refusals(cases: Mapping[str, str], directory: Path) -> str:
    """Return what each case says, under its name."""
    return "\n".join(f"# {name}\n{refusal(name, HEAD + text, directory)}\n" for name, text in cases.items())


def refusal(name: str, text: str, directory: Path) -> str:
    path = directory / f"{name}.py"
    path.write_text(text)
    with pytest.raises(Exception) as info:
        runpy.run_path(str(path))
    kinds = [kind.__name__ for kind in type(info.value).__mro__ if kind.__module__ == "builtins"][:-3]
    shown = str(info.value).replace(f"{directory}/", "").replace(str(directory), ".")
    return f"{type(info.value).__name__} ({', '.join(kinds)})\n{shown}"


def test_declarations_are_refused_when_they_are_made(tmp_path: Path, golden: Golden) -> None:
    golden("pto_declarations.txt", refusals(DECLARATIONS, tmp_path))


@pytest.mark.usefixtures("lowering")
def test_compilations_are_refused(tmp_path: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    golden("pto_compilations.txt", refusals(COMPILATIONS, tmp_path))


@pytest.mark.usefixtures("lowering")
def test_launches_are_refused_before_anything_runs(tmp_path: Path, golden: Golden) -> None:
    golden("pto_launches.txt", refusals(LAUNCHES, tmp_path))
