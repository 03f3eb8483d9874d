"""NVIDIA's tools: an assembler that is missing or broken is said by the doctor, and where something is compiled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from unit.backends.cuda.test_texts import add, ones

from tilewright import ir
from tilewright.backends.cuda import nvidia_tools
from tilewright.backends.cuda.nvidia_tools import OTHER_ASSEMBLER, assembler
from tilewright.backends.cuda.target import triton_objection
from tilewright.tools import cli

WORKS, BROKEN = "echo 'Cuda compilation tools, release 12.8, V12.8.93'", "exit 3"


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where Triton has its assembler, which is not there yet."""
    monkeypatch.delenv(OTHER_ASSEMBLER, raising=False)
    monkeypatch.setattr(nvidia_tools, "_own", lambda tool: str(tmp_path / tool))  # pyright: ignore
    return tmp_path / nvidia_tools.ASSEMBLER


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_an_assembler_is_named_by_version_and_place(own: Path) -> None:
    script(own, WORKS)
    assert assembler() == f"12.8 ({own})"


def test_one_that_does_not_run_is_passed_over_as_triton_does(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = script(tmp_path / "other", BROKEN)
    monkeypatch.setenv(OTHER_ASSEMBLER, str(other))
    script(own, WORKS)
    assert assembler() == f"12.8 ({own}); {other} does not run (it ends with 3)"


def test_the_doctor_says_what_follows_from_a_missing_or_broken_one(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for wanted in (f"none: {own} is not there", f"none: {own} does not run (it ends with 3)"):
        assert cli.main(["doctor", "--json"]) == 0
        (found,) = [each for each in json.loads(capsys.readouterr().out) if each["name"] == "assembler"]
        assert found["value"] == wanted and "cannot be compiled" in found["follows"]
        assert "pip install --force-reinstall triton" in found["help"]
        script(own, BROKEN)


@pytest.mark.skipif(bool(triton_objection()), reason="needs Triton")
def test_compiling_without_one_is_no_mistake_in_a_kernel(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.backends.cuda import engine

    def missing(*_: object) -> None:
        raise RuntimeError("Cannot find ptxas")

    monkeypatch.setattr(engine, "_compiled", missing)
    with pytest.raises(ImportError, match=f"NVIDIA's assembler, of which there is none: {own} is not there"):
        ir.compile(add.specialize(ones(64, 128), ones(64, 128)).program, platform="cuda", target="sm_90")
