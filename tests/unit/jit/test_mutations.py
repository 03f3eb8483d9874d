"""Mutations: whatever a kernel reads may change, in a living process and before the next one, and is never ignored."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from unit.jit.mutations import HEAD, MUTATIONS, Mutation, annotated, module

import tilewright.language as pl
from tilewright.errors import DriftError, KernelError, StaticEvaluationError

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
def m(row: Mutation, tmp_path: Path) -> Any:
    path = tmp_path / "row.py"
    path.write_text(row.module)
    yield loaded(path, "row_of_a_mutation")
    sys.modules.pop("row_of_a_mutation")


def result(m: Any, row: Mutation) -> float:
    """Return what the kernel of a row writes."""
    out = np.zeros((8, 8), np.float32)
    extra = eval(f"({row.extra},)") if row.extra else ()
    m.kernel(X, *extra, out)
    assert (out == out[0, 0]).all()
    return float(out[0, 0])


def warm(m: Any, row: Mutation, wanted: float) -> None:
    """Call a kernel until its calls no longer enter Python."""
    assert [result(m, row) for _ in range(5)] == [wanted] * 5
    if not row.is_slow:
        hits, direct = m.kernel.cache_info().hits, m.kernel.call_info().direct
        assert result(m, row) == wanted
        assert m.kernel.call_info().direct == direct + 1 and m.kernel.cache_info().hits == hits + 1


def do(statements: str, m: Any) -> None:
    exec(statements, {"m": m})


@ROWS
def test_a_changed_value_is_never_ignored_while_a_process_lives(row: Mutation, m: Any) -> None:
    warm(m, row, row.before)
    compiles = m.kernel.cache_info().compiles
    do(row.change, m)
    if row.drifts:
        for _ in range(2):
            with pytest.raises(DriftError) as caught:
                result(m, row)
            assert row.drifts in str(caught.value) and "of module row_of_a_mutation reads" in str(caught.value)
    else:
        warm(m, row, row.after)
    do(row.revert, m)
    warm(m, row, row.before)
    assert m.kernel.cache_info().compiles == compiles + (not row.keeps and not row.drifts)


@ROWS
def test_a_kernel_that_follows_has_a_program_for_each_value(
    row: Mutation, m: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_DRIFT", "recompile")
    warm(m, row, row.before)
    compiles = m.kernel.cache_info().compiles
    for _ in range(2):
        do(row.change, m)
        warm(m, row, row.after)
        do(row.revert, m)
        warm(m, row, row.before)
    assert m.kernel.cache_info().compiles == compiles + (not row.keeps)


# who reads what


def module_of(tmp_path: Path, name: str, text: str) -> Any:
    """Return a module of some text, importable by others under its name."""
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    return loaded(path, name)


OWNERS = f"""{HEAD}
EXTRA = 1.0

class Base:
    @pl.jit.inline
    def step(self, t):
        return t * 2.0

    @pl.jit
    def run(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(self.step(pl.load(x, [0, 0], [8, 8])), [0, 0], out)
        return out

class Sub(Base):
    @pl.jit.inline
    def step(self, t):
        return t * 3.0 * EXTRA

base, sub = Base(), Sub()
"""


@pytest.mark.parametrize("order", ["base first", "sub first"])
def test_what_a_subclass_reads_is_nothing_to_its_base(order: str, tmp_path: Path) -> None:
    m = module_of(tmp_path, "owners_of_a_test", OWNERS)
    out = np.zeros((8, 8), np.float32)
    for owner, wanted in [(m.base, 2.0), (m.sub, 3.0)][:: 1 if order == "base first" else -1] * 5:
        owner.run(X, out)
        assert (out == wanted).all()
    m.EXTRA = 2.0
    m.base.run(X, out)
    assert (out == 2.0).all()
    with pytest.raises(DriftError, match="global `EXTRA`, which `Sub.step` of module owners_of_a_test reads"):
        m.sub.run(X, out)
    m.EXTRA = 1.0
    m.sub.run(X, out)
    assert (out == 3.0).all() and m.base.run.cache_info().compiles == m.sub.run.cache_info().compiles == 1


def test_the_same_name_in_two_modules_is_two_things(tmp_path: Path) -> None:
    other = module_of(
        tmp_path, "other_of_a_test", f"{HEAD}K = 3.0\n\n@pl.jit.inline\ndef scaled(t):\n    return t * K\n"
    )
    m = module_of(
        tmp_path, "one_of_a_test", module("import other_of_a_test\nK = 2.0\n", "t = other_of_a_test.scaled(t) * K")
    )
    row = Mutation("", "", "", "", 6.0, 6.0)
    warm(m, row, 6.0)
    other.K = 4.0
    with pytest.raises(DriftError, match="`K`, which `scaled` of module other_of_a_test reads, was 3.0"):
        result(m, row)
    other.K, m.K = 3.0, 5.0
    with pytest.raises(DriftError, match="`K`, which `kernel` of module one_of_a_test reads, was 2.0"):
        result(m, row)
    m.K = 2.0
    warm(m, row, 6.0)


RECURSIVE = """
@pl.jit.inline
def fine(t):
    return t * 2.0

@pl.jit.inline
def helper(t):
    return helper(t)
"""


def test_a_mistake_leaves_nothing_behind(tmp_path: Path) -> None:
    m = module_of(tmp_path, "recursive_of_a_test", module(RECURSIVE, "t = helper(t)"))
    row = Mutation("", "", "", "", 2.0, 2.0)
    for _ in range(2):
        with pytest.raises(KernelError, match="calls itself"):
            result(m, row)
    m.helper = m.fine
    warm(m, row, 2.0)
    assert m.kernel.cache_info().currsize == 1


UNFOLLOWED = {
    "the length of an object": (
        "class C:\n    def __len__(self):\n        return 2\nK = C()",
        "t = t * (len(K) * 1.0)",
    ),
    "an object in arithmetic": (
        "class C:\n    def __add__(self, o):\n        return 2\nK = C()",
        "t = t * ((K + 1) * 1.0)",
    ),
    "an object compared": ("class C:\n    pass\nK = C()", "t = t * (2.0 if K == 3 else 3.0)"),
    "an object as text": ("class C:\n    pass\nK = C()", "t = t * (2.0 if f'{K}' == 'a' else 3.0)"),
    "whether an object is true": ("class C:\n    pass\nK = C()", "t = t * (2.0 if K else 3.0)"),
    "an array in arithmetic": ("import numpy as np\nK = np.ones(1)", "t = t * float(K * 2)"),
    "objects in a list": ("class C:\n    pass\nK = [C()]", "t = t * (2.0 if K == [1] else 3.0)"),
    "a lambda that reads an object": ("class C:\n    k = 2.0\nK = C()\nf = lambda: K", "t = t * f().k"),
    "a lambda that calls": ("def g():\n    return 2.0\nf = lambda: g()", "t = t * f()"),
    "a lambda that looks at the clock": ("import time\nf = lambda: time.time()", "t = t * f()"),
    "a lambda of an object": ("class C:\n    k = 2.0\nK = C()\nf = lambda c: c.k", "t = t * f(K)"),
}


@pytest.mark.parametrize("name", UNFOLLOWED)
def test_what_cannot_be_followed_is_refused_with_a_way_out(name: str, tmp_path: Path) -> None:
    outside, body = UNFOLLOWED[name]
    m = module_of(tmp_path, "unfollowed_of_a_test", module(outside, body))
    with pytest.raises(StaticEvaluationError, match="the cache cannot follow") as caught:
        result(m, Mutation("", "", "", "", 2.0, 2.0))
    assert "help: " in str(caught.value) and "unfollowed_of_a_test.py" in str(caught.value)


def test_an_annotation_that_runs_code_is_refused(tmp_path: Path) -> None:
    text = annotated("made()").replace("NUMBER = pl.INT32", "def made():\n    return pl.INT32")
    m = module_of(tmp_path, "made_of_a_test", text)
    with pytest.raises(
        KernelError, match=r"`made\(\)` runs while the annotation is read: give its result a name outside"
    ):
        m.kernel(X, 3, np.zeros((8, 8), np.float32))


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
