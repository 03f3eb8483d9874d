"""Mutations: whatever a kernel reads may change, in a living process and before the next one, and is never ignored."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from unit.jit.mutations import MUTATIONS, Mutation

import tilewright.language as pl
from tilewright.errors import DriftError

ROWS = pytest.mark.parametrize("row", MUTATIONS, ids=lambda row: row.name.replace(" ", "-"))
X = np.ones((8, 8), np.float32)


def loaded(path: Path, name: str) -> ModuleType:
    """Return the module in a file, imported anew."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def module(row: Mutation, tmp_path: Path) -> Any:
    path = tmp_path / "row.py"
    path.write_text(row.module)
    yield loaded(path, "row_of_a_mutation")
    sys.modules.pop("row_of_a_mutation")


def result(module: Any, row: Mutation) -> float:
    """Return what the kernel of a row writes."""
    out = np.zeros((8, 8), np.float32)
    extra = eval(f"({row.extra},)") if row.extra else ()
    module.kernel(X, *extra, out)
    assert (out == out[0, 0]).all()
    return float(out[0, 0])


def warm(module: Any, row: Mutation, wanted: float) -> None:
    """Call a kernel until its calls no longer enter Python."""
    assert [result(module, row) for _ in range(5)] == [wanted] * 5
    if not row.is_slow:
        hits = module.kernel.cache_info().hits
        assert result(module, row) == wanted
        assert type(type(module.kernel).__call__) is BuiltinFunctionType
        state = module.kernel._session.fast
        assert state.hits > 0 and module.kernel.cache_info().hits == hits + 1


def do(statements: str, module: Any) -> None:
    exec(statements, {"m": module})


@ROWS
def test_a_changed_value_is_never_ignored_while_a_process_lives(row: Mutation, module: Any) -> None:
    warm(module, row, row.before)
    compiles = module.kernel.cache_info().compiles
    do(row.change, module)
    if row.drifts:
        for _ in range(2):
            with pytest.raises(DriftError) as caught:
                result(module, row)
            assert row.drifts in str(caught.value) and "of module row_of_a_mutation reads" in str(caught.value)
    else:
        warm(module, row, row.after)
    do(row.revert, module)
    warm(module, row, row.before)
    assert module.kernel.cache_info().compiles == compiles + (not row.keeps and not row.drifts)


@ROWS
def test_a_kernel_that_follows_has_a_program_for_each_value(
    row: Mutation, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_DRIFT", "recompile")
    warm(module, row, row.before)
    compiles = module.kernel.cache_info().compiles
    for _ in range(2):
        do(row.change, module)
        warm(module, row, row.after)
        do(row.revert, module)
        warm(module, row, row.before)
    assert module.kernel.cache_info().compiles == compiles + (not row.keeps)


# between processes

WORKER = Path(__file__).with_name("mutation_worker.py")


def processes(folder: Path, cache: Path, change: str = "", **environment: str) -> dict[str, Any]:
    """Return what all rows give in a fresh process: result and compiles of each, by name."""
    names = {name: value for name, value in os.environ.items() if not name.startswith("TILEWRIGHT_")}
    source = Path(pl.__file__).parents[2]
    found = subprocess.run(
        [sys.executable, str(WORKER), str(folder), change],
        env={**names, "PYTHONPATH": str(source), "TILEWRIGHT_CACHE_DIR": str(cache), **environment},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the module of every row."""
    made = tmp_path_factory.mktemp("rows")
    for number, row in enumerate(MUTATIONS):
        (made / f"row_{number}.py").write_text(row.module)
        (made / f"row_{number}.json").write_text(json.dumps([row.name, row.change, row.revert, row.extra]))
    return made


@pytest.fixture(scope="module")
def runs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every row in processes that share one cache, each started with another hash seed."""
    cache = tmp_path_factory.mktemp("cache")
    phases = {"first": "", "again": "", "changed": "change", "changed again": "change", "reverted": ""}
    return {
        phase: processes(folder, cache, change, PYTHONHASHSEED=str(seed))
        for seed, (phase, change) in enumerate(phases.items())
    }


@ROWS
def test_a_changed_value_is_never_ignored_by_another_process(row: Mutation, runs: dict[str, dict[str, Any]]) -> None:
    found = {phase: run[row.name] for phase, run in runs.items()}
    results = {phase: one["result"] for phase, one in found.items()}
    assert results == {
        **dict.fromkeys(("first", "again", "reverted"), row.before),
        **dict.fromkeys(("changed", "changed again"), row.after),
    }
    compiles = {phase: one["compiles"] for phase, one in found.items()}
    assert compiles["again"] == compiles["changed again"] == compiles["reverted"] == 0
    if row.keeps:
        assert compiles["changed"] == 0


@ROWS
def test_an_unchanged_kernel_is_not_read_again_by_another_process(
    row: Mutation, runs: dict[str, dict[str, Any]]
) -> None:
    for phase in ("again", "changed again", "reverted"):
        assert runs[phase][row.name]["specialized"] == (not row.is_kept)
