"""Execution: in one step, from source or from a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.programs.programs import HALVES, program_of, rows

from tilewright import ir
from tilewright.runtime import BackendType, RunConfig, compile_program, execute_compiled, run

X = rows(16)


def test_run_compiles_and_runs() -> None:
    out = np.zeros_like(X)
    compiled = run(program_of(HALVES), X, 0, out, config=RunConfig(platform="a5"))
    np.testing.assert_array_equal(out, X / 2)
    assert compiled.platform == "a5"


def test_run_without_a_configuration_is_native() -> None:
    assert run(program_of(HALVES), X, 0).platform == "cpu"
    assert run(program_of(HALVES), X, 0, platform="interpret").platform == "interpret"


def test_generating_code_alone_runs_nothing(tmp_path: Path) -> None:
    out = np.zeros_like(X)
    run(program_of(HALVES), X, 0, out, config=RunConfig(codegen_only=True, save_kernels_dir=tmp_path))
    assert not out.any() and any(tmp_path.iterdir())


def test_a_saved_program_runs_in_place(tmp_path: Path) -> None:
    compiled, out = ir.compile(program_of(HALVES)), np.zeros_like(X)
    compiled.save(tmp_path)
    execute_compiled(tmp_path, [X, 0, out], platform="a2a3", device_id=0)
    np.testing.assert_array_equal(out, X / 2)


def test_a_compiled_program_will_do() -> None:
    out = np.zeros_like(X)
    execute_compiled(ir.compile(program_of(HALVES)), [X, 0, out])
    np.testing.assert_array_equal(out, X / 2)


def test_every_parameter_is_needed() -> None:
    with pytest.raises(TypeError, match=r"takes every parameter \(x, n, out\), got 2"):
        execute_compiled(ir.compile(program_of(HALVES)), [X, 0])


def test_a_folder_without_a_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="compiled_meta.json"):
        execute_compiled(tmp_path, [X, 0])


def test_without_arguments_a_program_is_compiled_only() -> None:
    assert run(program_of(HALVES), config=RunConfig("a5")).param_names == ["x", "n", "out"]


def test_a_program_is_compiled_into_a_folder_and_run_from_there(tmp_path: Path) -> None:
    strategy, out = ir.OptimizationStrategy.Default, np.zeros_like(X)
    done = compile_program(
        program_of(HALVES), tmp_path, strategy=strategy, backend_type=BackendType.Ascend910B, dump_passes=True
    )
    assert done is None and (tmp_path / "passes_dump" / "00_frontend.py").exists()
    execute_compiled(tmp_path, [X, 0, out])
    np.testing.assert_array_equal(out, X / 2)
