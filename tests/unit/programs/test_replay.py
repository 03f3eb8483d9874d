"""Replays: the `run.py` of a folder runs its program, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.programs.programs import HALVES, SEVERAL, program_of, rows

import tilewright.language as pl
from tilewright import ir
from tilewright.programs.replay import main


def outputs(folder: Path, *options: str) -> dict[str, Any]:
    assert main(folder, [*options, "--save", str(folder / "outputs.npz")], pl.parse) == 0
    with np.load(folder / "outputs.npz") as saved:
        return {name: saved[name] for name in saved.files}


def test_the_script_runs_in_a_process_of_its_own(target: str, tmp_path: Path) -> None:
    compiled = ir.compile(program_of(HALVES), output_dir=tmp_path / "out", platform=target)
    moved = (tmp_path / "out").rename(tmp_path / "moved")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(moved / "run.py"), "--set", "M=16"]
    run = subprocess.run(command, env=environment, text=True, capture_output=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "<entry main(x, n, out) of Halves> took" in run.stdout
    assert "out: float32[16, 64] min -" in run.stdout
    assert compiled.program.name == "Halves"


def test_random_inputs_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    folder = Path(ir.compile(program_of(HALVES), output_dir=tmp_path))
    first, again, other = (outputs(folder, "--seed", seed)["out"] for seed in "112")
    assert first.shape == (64, 64) and (first == again).all() and (first != other).any()


def test_saved_inputs_are_replayed(tmp_path: Path) -> None:
    compiled, x = ir.compile(program_of(HALVES), output_dir=tmp_path), rows(3)
    assert compiled.save_inputs(x, n=0) == tmp_path / "inputs.npz"
    np.testing.assert_array_equal(outputs(tmp_path)["out"], x / 2)
    assert outputs(tmp_path, "--random")["out"].shape == (64, 64)


def test_inputs_are_checked_before_they_are_saved(tmp_path: Path) -> None:
    compiled = ir.compile(program_of(HALVES), output_dir=tmp_path)
    with pytest.raises(ValueError, match="`x` expects rank 2"):
        compiled.save_inputs(rows(3)[0], 0)
    assert not (tmp_path / "inputs.npz").exists()


def test_types_that_numpy_forgets_come_back(tmp_path: Path) -> None:
    compiled = ir.compile(program_of(SEVERAL), output_dir=tmp_path)
    compiled.save_inputs(np.arange(3, dtype=ml_dtypes.bfloat16), entry="repeat")
    result = outputs(tmp_path, "--entry", "repeat")["out"]
    assert result.view(ml_dtypes.bfloat16).tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_an_entry_is_chosen_and_numbers_are_set(tmp_path: Path) -> None:
    folder = Path(ir.compile(program_of(SEVERAL), output_dir=tmp_path))
    shown = outputs(folder, "--entry", "double", "--set", "by=3")
    assert shown["result0"] == 4 and shown["x"].shape == (4,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "there are several entries: pass --entry with one of double, repeat"),
        (["--entry", "double", "--set", "by=99"], "`by` must lie within 0 to 9, got 99"),
        (["--entry", "double", "--inputs", "nowhere.npz"], "No such file"),
    ],
    ids=str,
)
def test_what_goes_wrong_is_one_line(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(ir.compile(program_of(SEVERAL), output_dir=tmp_path))
    assert main(folder, options, pl.parse) == 1
    assert message in capsys.readouterr().err
