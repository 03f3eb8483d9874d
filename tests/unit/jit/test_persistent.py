"""The persistent cache: a second process finds what the first one compiled, and never anything else."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from unit.jit.processes import finish, run, start

from tilewright import settings
from tilewright.errors import CacheWarning, ExecutionError
from tilewright.jit import kept
from tilewright.keep import fingerprint, manifest, programs
from tilewright.keep.directory import Directory
from tilewright.keep.store import Store

HELPER = """
import tilewright.language as pl

FACTOR = 2.0

@pl.jit.inline
def scaled(t):
    return t * FACTOR
"""

KERNEL = """
from __future__ import annotations

from enum import IntEnum

import helper_of_a_test
import tilewright.language as pl


class Factor(IntEnum):
    ONE = 1


UNUSED = 1


@pl.jit
def kernel(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        i = pl.cast(pl.read(index, [0]), pl.INDEX)
        t = pl.load(x, [i, 0], [1, 8])
        t = helper_of_a_test.scaled(t) * (Factor.ONE * 1.0)
        pl.store(t, [0, 0], out)
    return out
"""


def written(folder: Path) -> Path:
    """Return a checkout in a folder."""
    made = folder / "checkout"
    made.mkdir()
    (made / "helper_of_a_test.py").write_text(HELPER)
    (made / "kernels.py").write_text(KERNEL)
    return made


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose kernel has run, and the cache it left."""
    folder = tmp_path_factory.mktemp("prepared")
    assert run(written(folder) / "kernels.py", folder / "cache").result == 2.0
    return folder


@pytest.fixture
def compiled(prepared: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A checkout that was compiled elsewhere, with a cache of its own."""
    return (
        Path(shutil.copytree(prepared / "checkout", tmp_path / "checkout")),
        Path(shutil.copytree(prepared / "cache", tmp_path / "cache")),
    )


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# what a second process needs


def test_a_second_process_runs_without_the_compiler(checkout: Path, cache: Path) -> None:
    first = run(checkout / "kernels.py", cache)
    again = run(checkout / "kernels.py", cache)
    assert (first.result, first.compiles) == (2.0, 1)
    assert (again.result, again.compiles, again.misses) == (2.0, 0, 1)
    compiler = (
        "llvmlite",
        "tilewright.passes.manager",
        "tilewright.backends.cpu.host.program",
        "tilewright.core.serialize",
        "tilewright.ops.elementwise",
    )
    assert not {*compiler} & {*again.modules} and {*compiler} <= {*first.modules}


def test_the_first_call_of_a_second_process_goes_the_native_way_as_soon_as_ever(checkout: Path, cache: Path) -> None:
    run(checkout / "kernels.py", cache)
    again = run(checkout / "kernels.py", cache)
    assert (again.hits, again.compiles) == (2, 0)
    assert "tilewright.native.assemble" in again.modules and "llvmlite" not in again.modules


def test_without_a_cache_every_process_compiles(checkout: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert (run(checkout / "kernels.py", "off", HOME=str(tmp_path)).compiles) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["checkout"]


def test_a_shared_cache_is_read_and_never_written(checkout: Path, cache: Path, tmp_path: Path) -> None:
    run(checkout / "kernels.py", cache)
    files = sorted(cache.rglob("*"))
    for path in (*files, cache):
        path.chmod(path.stat().st_mode & ~0o222)
    shared = run(checkout / "kernels.py", tmp_path / "own", TILEWRIGHT_SHARED_CACHE_DIRS=str(cache))
    edited = run(
        checkout / "kernels.py", "off", "m.helper_of_a_test.FACTOR = 3.0", TILEWRIGHT_SHARED_CACHE_DIRS=str(cache)
    )
    for path in (*files, cache):
        path.chmod(path.stat().st_mode | 0o200)
    assert (shared.result, shared.compiles) == (2.0, 0)
    assert (edited.result, edited.compiles) == (3.0, 1)
    assert sorted(cache.rglob("*")) == files


def test_a_directory_that_cannot_be_written_is_a_warning(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = run(checkout / "kernels.py", tmp_path / "file" / "cache")
    assert (found.result, found.compiles) == (2.0, 1)
    assert found.warnings.count("CacheWarning") == 1


def test_processes_that_start_together_compile_once(checkout: Path, cache: Path) -> None:
    started = [start(checkout / "kernels.py", cache) for _ in range(4)]
    found = [finish(process) for process in started]
    assert [one.result for one in found] == [2.0] * 4
    assert sum(one.compiles for one in found) == 1


def test_run_only_runs_what_was_kept_and_names_what_was_not(checkout: Path, cache: Path) -> None:
    run(checkout / "kernels.py", cache)
    assert run(checkout / "kernels.py", cache, TILEWRIGHT_RUN_ONLY="1").result == 2.0
    missing = run(checkout / "kernels.py", cache, "m.helper_of_a_test.FACTOR = 9.0", TILEWRIGHT_RUN_ONLY="1")
    assert "kernel `kernel` is not compiled for" in missing.error and str(cache) in missing.error


# what changes a program, and what does not

EDITS = [
    ("a number in a helper of another file", "helper_of_a_test.py", "FACTOR = 2.0", "FACTOR = 3.0", 3.0),
    ("the code of a helper", "helper_of_a_test.py", "t * FACTOR", "t * FACTOR + t", 3.0),
    ("the kernel", "kernels.py", "* (Factor.ONE * 1.0)", "* (Factor.ONE * 1.5)", 3.0),
    ("the value of an enum member", "kernels.py", "ONE = 1", "ONE = 3", 6.0),
    ("a shadowed builtin", "kernels.py", "UNUSED = 1", "UNUSED = 1\nhelper_of_a_test.FACTOR = 3.0", 3.0),
]
NEUTRAL = [
    ("an unrelated global", "kernels.py", "UNUSED = 1", "UNUSED = 2\nNEW = 3"),
    ("a comment above", "kernels.py", "UNUSED = 1", "# a comment\n# another\nUNUSED = 1"),
    ("a comment inside", "kernels.py", "        t = pl.load", "        # a comment\n\n        t = pl.load"),
    ("a comment behind", "kernels.py", "pl.load(x, [i, 0], [1, 8])", "pl.load(x, [i, 0], [1, 8])  # a row"),
    (
        "another layout",
        "kernels.py",
        "pl.load(x, [i, 0], [1, 8])",
        "pl.load(\n            x, [i, 0], [1, 8]\n        )",
    ),
    ("a comment in a helper", "helper_of_a_test.py", "    return", "    # a comment\n    return"),
    ("an unrelated function", "kernels.py", "UNUSED = 1", "UNUSED = 1\n\ndef unused():\n    return UNUSED\n"),
    ("a drift policy", "kernels.py", "@pl.jit\n", '@pl.jit(drift="recompile")\n'),
]


@pytest.mark.parametrize(("name", "file", "old", "new", "result"), EDITS, ids=[edit[0] for edit in EDITS])
def test_an_edit_that_changes_code_gives_other_code_and_its_revert_the_first(
    compiled: tuple[Path, Path], name: str, file: str, old: str, new: str, result: float
) -> None:
    checkout, cache = compiled
    kernels = checkout / "kernels.py"
    edit(checkout / file, old, new)
    changed, again = run(kernels, cache), run(kernels, cache)
    assert (changed.result, changed.compiles) == (result, 1)
    assert (again.result, again.compiles) == (result, 0)
    edit(checkout / file, new, old)
    reverted = run(kernels, cache)
    assert (reverted.result, reverted.compiles) == (2.0, 0)


@pytest.mark.parametrize(("name", "file", "old", "new"), NEUTRAL, ids=[edit[0] for edit in NEUTRAL])
def test_an_edit_that_cannot_change_code_finds_it_again(
    compiled: tuple[Path, Path], name: str, file: str, old: str, new: str
) -> None:
    checkout, cache = compiled
    edit(checkout / file, old, new)
    changed = run(checkout / "kernels.py", cache)
    assert (changed.result, changed.compiles) == (2.0, 0)


def test_another_place_and_another_hash_seed_find_it_again(checkout: Path, cache: Path) -> None:
    run(checkout / "kernels.py", cache, PYTHONHASHSEED="1")
    moved = checkout.rename(checkout.with_name("elsewhere"))
    found = run(moved / "kernels.py", cache, PYTHONHASHSEED="2")
    assert (found.result, found.compiles) == (2.0, 0)
    assert "tilewright.core.serialize" not in found.modules


ANNOTATED = """
from __future__ import annotations
import tilewright.language as pl

@pl.jit
def kernel(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.INT32 = 1):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 8])
        t = t * (3.0 if isinstance(n, float) else 2.0)
        pl.store(t, [0, 0], out)
    return out
"""


@pytest.mark.parametrize("head", ["from __future__ import annotations", ""], ids=["text", "objects"])
def test_an_annotation_that_was_edited_is_read_anew(tmp_path: Path, cache: Path, head: str) -> None:
    path = tmp_path / "annotated.py"
    path.write_text(ANNOTATED.replace("from __future__ import annotations", head))
    assert [run(path, cache).result for _ in range(2)] == [2.0, 2.0]
    edit(path, "n: pl.INT32", "n: pl.FP32")
    assert [run(path, cache).result for _ in range(2)] == [3.0, 3.0]
    edit(path, "n: pl.FP32", "n: pl.INT32")
    assert (run(path, cache).result, run(path, cache).compiles) == (2.0, 0)


def test_a_file_edited_after_its_import_poisons_nothing(checkout: Path, cache: Path) -> None:
    """The text is that of another kernel by then: it is refused, and never compiled under the wrong name."""
    change = "path.write_text(path.read_text().replace('ONE * 1.0', 'ONE * 1.5'))"
    edited = run(checkout / "kernels.py", cache, change)
    assert "has changed since Python read it" in edited.error
    assert (run(checkout / "kernels.py", cache).result, run(checkout / "kernels.py", cache).result) == (3.0, 3.0)
    edit(checkout / "kernels.py", "ONE * 1.5", "ONE * 1.0")
    assert run(checkout / "kernels.py", cache).result == 2.0


def test_settings_that_change_code_have_code_of_their_own(checkout: Path, cache: Path) -> None:
    kernels = checkout / "kernels.py"
    runs = [run(kernels, cache, TILEWRIGHT_CHECKED=value) for value in ("on", "off", "1", "0", "on")]
    assert [(one.result, one.compiles) for one in runs] == [(2.0, 1), (2.0, 1), (2.0, 0), (2.0, 0), (2.0, 0)]
    assert run(kernels, cache, TILEWRIGHT_NUM_THREADS="3").compiles == 0


CHANGED = {
    "TILEWRIGHT_CHECKED": "off", "TILEWRIGHT_PERF": "gdb", "TILEWRIGHT_TILES": "written",
    "TILEWRIGHT_SMALL_WORK": "shared", "TILEWRIGHT_CUDA_SCHEDULE": "warps=8", "TILEWRIGHT_AMX": "off",
    "TILEWRIGHT_CORES": "16",
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_each_setting_that_changes_code_is_part_of_the_key(name: str, checkout: Path, cache: Path) -> None:
    kernels, changed = checkout / "kernels.py", cast("dict[str, Any]", {name: CHANGED[name]})
    runs = [run(kernels, cache), run(kernels, cache, **changed), run(kernels, cache)]
    assert [one.compiles for one in runs] == [1, 1, 0]
    assert len(CHANGED) == len(settings.CodeSettings._fields)


# where errors point


def test_an_error_points_to_where_its_line_stands_now(checkout: Path, cache: Path) -> None:
    kernels = checkout / "kernels.py"
    first = run(kernels, cache, index=9)
    assert "kernels.py:21:13: in kernel `kernel`: axis 0: a load of" in first.error
    edit(kernels, "UNUSED = 1", "# one\n# two\nUNUSED = 1")
    above = run(kernels, cache, index=9)
    edit(kernels, "        t = pl.load", "        # three\n        t = pl.load")
    inside = run(kernels, cache, index=9)
    edit(kernels, "pl.load(x,", "pl.load(  # four\n            x,")
    laid_out = run(kernels, cache, index=9)
    moved = checkout.rename(checkout.with_name("elsewhere"))
    elsewhere = run(moved / "kernels.py", cache, index=9)
    assert [one.compiles for one in (first, above, inside, laid_out, elsewhere)] == [1, 0, 0, 0, 0]
    assert first.error.replace(":21:", ":23:").replace("\n 21 |", "\n 23 |") == above.error
    assert above.error.replace(":23:", ":24:").replace("\n 23 |", "\n 24 |") == inside.error
    assert f"{kernels}:24:13" in laid_out.error and "24 |         t = pl.load(  # four" in laid_out.error
    assert elsewhere.error == laid_out.error.replace(str(kernels), str(moved / "kernels.py"))


HELPED = KERNEL.replace("t = helper_of_a_test.scaled(t)", "t = helper_of_a_test.row(x, i)")
ROW = HELPER + "\n@pl.jit.inline\ndef row(x, i):\n    t = pl.load(x, [i, 0], [1, 8])\n    return t * FACTOR\n"


def test_an_error_in_a_helper_shows_both_files_as_they_are(checkout: Path, cache: Path) -> None:
    (checkout / "kernels.py").write_text(HELPED.replace("        t = pl.load(x, [i, 0], [1, 8])\n", ""))
    (checkout / "helper_of_a_test.py").write_text(ROW)
    first = run(checkout / "kernels.py", cache, index=9)
    edit(checkout / "helper_of_a_test.py", "FACTOR = 2.0", "# moved\nFACTOR = 2.0")
    edit(checkout / "kernels.py", "UNUSED = 1", "# moved\n# twice\nUNUSED = 1")
    second = run(checkout / "kernels.py", cache, index=9)
    assert (first.compiles, second.compiles) == (1, 0)
    assert "helper_of_a_test.py:12:9" in first.error and "kernels.py:21" in first.error
    assert "helper_of_a_test.py:13:9" in second.error and "kernels.py:23" in second.error


# within one process, where another is only pretended


@pytest.fixture
def fresh(checkout: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Imports the kernel anew, as another process would."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(cache))
    monkeypatch.setattr(sys, "path", [str(checkout), *sys.path])

    def imported() -> Any:
        sys.modules.pop("helper_of_a_test", None)
        spec = importlib.util.spec_from_file_location("kernels_of_a_test", checkout / "kernels.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "kernels_of_a_test", module)
        spec.loader.exec_module(module)
        return module

    yield imported
    sys.modules.pop("helper_of_a_test", None)


def call(module: Any, index: int = 0) -> float:
    out = np.zeros((8, 8), np.float32)
    module.kernel(np.ones((8, 8), np.float32), np.array([index], np.int32), out)
    return float(out[0, 0])


def entries(cache: Path, kind: str) -> list[Path]:
    found = [file for file in Directory(cache).files() if not file.is_temporary and file.kind == kind]
    return [cache / file.shard / file.name for file in found]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "one bit": lambda data: data[:-10] + bytes([data[-10] ^ 1]) + data[-9:],
    "the head": lambda data: b"????" + data[4:],
    "longer": lambda data: data + b"x",
}


@pytest.mark.parametrize("kind", ["artifact", "manifest"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_entry_is_made_again(fresh: Any, cache: Path, kind: str, damage: Callable[[bytes], bytes]) -> None:
    assert call(fresh()) == 2.0
    (path,) = entries(cache, kind)
    path.write_bytes(damage(path.read_bytes()))
    second, third = fresh(), fresh()
    assert (call(second), call(third)) == (2.0, 2.0)
    assert second.kernel.cache_info().compiles == (kind == "artifact")
    assert third.kernel.cache_info().compiles == 0


WRONG: list[bytes] = [
    b"", b"null", b"[]", b"{}", b"[[]]", b'"text"', b"\xff\xfe", b"[[1,2,3,4,5]]", b'[["zz",[],null,[],[]]]',
    b'[["00",[],null,[],[]]]',
    b'[["00",[],null,[[0,"GLOBAL",["x"],"00"]],[]]]', b"[" * 10_000,
    b'[["",[],null,[[null,"",[],"00"]],[[5,"?",[],null]]]]',
]  # fmt: skip


@pytest.mark.parametrize("data", WRONG, ids=range(len(WRONG)))
def test_a_manifest_that_says_nothing_is_written_again(fresh: Any, cache: Path, data: bytes) -> None:
    """Its checksum is right: some other version wrote it, or nobody knows who."""
    assert call(fresh()) == 2.0
    (path,) = entries(cache, "manifest")
    store = Store(cache)
    key = bytes.fromhex(path.name.partition(".")[0])
    assert store.put("manifest", key, data)
    assert manifest.read(data) == [] or data in WRONG[7:]
    again = fresh()
    assert (call(again), again.kernel.cache_info().compiles) == (2.0, 0)
    assert json.loads(store.get("manifest", key) or b"")[-1][1] == ["x", "index", "out"]


@pytest.mark.parametrize("data", [b"", b"TWAR", b"\x00" * 100, b"TWAR\x01" + bytes(60)])
def test_an_artifact_that_is_none_is_compiled_again(fresh: Any, cache: Path, data: bytes) -> None:
    assert call(fresh()) == 2.0
    (path,) = entries(cache, "artifact")
    assert Store(cache).put("artifact", bytes.fromhex(path.name.partition(".")[0]), data)
    again = fresh()
    assert (call(again), again.kernel.cache_info().compiles) == (2.0, 1)


def _another_toolchain(*files: Path) -> bytes:
    return b"another"


def test_another_compiler_has_code_of_its_own(fresh: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(fresh()) == 2.0
    monkeypatch.setattr(programs, "toolchain", _another_toolchain)
    other = fresh()
    assert (call(other), other.kernel.cache_info().compiles) == (2.0, 1)
    monkeypatch.undo()
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(cache))
    assert len(entries(cache, "artifact")) == len(entries(cache, "manifest")) == 2


def test_libraries_count_by_what_is_in_them(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(cache))
    library = tmp_path / "lib.so"
    library.write_bytes(b"one")
    first = fingerprint.library_digest(library)
    assert fingerprint.library_digest(library) == first and len(entries(cache, "library")) == 1
    library.write_bytes(b"two")  # as long as before
    os.utime(library, (1, 1))
    assert fingerprint.library_digest(library) != first
    library.write_bytes(b"one")
    os.utime(library, (2, 2))
    assert fingerprint.library_digest(library) == first
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "off")
    assert fingerprint.library_digest(library) == first


def test_a_compiler_that_is_edited_while_it_runs_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of its lines were read before the edit nobody knows."""
    monkeypatch.setattr(fingerprint, "_started", lambda: 0.0)
    digests = {fingerprint.toolchain.__wrapped__() for _ in range(2)}
    monkeypatch.setattr(fingerprint, "_started", lambda: float("inf"))
    steady = {fingerprint.toolchain.__wrapped__() for _ in range(2)}
    assert len(digests) == 2 and len(steady) == 1 and not digests & steady


def test_a_process_knows_when_it_started() -> None:
    assert 0 <= time.time() - fingerprint._started() < 24 * 3600  # pyright: ignore[reportPrivateUsage]


def test_another_processor_has_code_of_its_own(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(fresh()) == 2.0
    monkeypatch.setattr("tilewright.native.matrix_units.fingerprint", lambda: "another")
    other = fresh()
    assert (call(other), other.kernel.cache_info().compiles) == (2.0, 1)


def test_another_python_reads_the_kernel_and_finds_the_code(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(fresh()) == 2.0
    monkeypatch.setattr(kept, "python", lambda: "another")
    other = fresh()
    assert (call(other), other.kernel.cache_info().compiles) == (2.0, 0)


def test_values_that_alternate_each_find_their_own(fresh: Any, cache: Path) -> None:
    """A manifest lists several programs; more than it lists are still found by their code."""
    values = [float(n) for n in range(1, manifest.LIMIT + 5)]
    for compiles in (1, 0):
        for value in values:
            module = fresh()
            module.helper_of_a_test.FACTOR = value
            assert (call(module), module.kernel.cache_info().compiles) == (value, compiles)
    assert len(entries(cache, "manifest")) == 1


def test_a_program_that_drifts_is_not_kept_under_the_value_it_drifted_to(fresh: Any) -> None:
    module = fresh()
    assert call(module) == 2.0
    module.helper_of_a_test.FACTOR = 3.0
    with pytest.raises(RuntimeError, match="FACTOR"):
        call(module)
    module = fresh()
    module.helper_of_a_test.FACTOR = 3.0
    assert (call(module), module.kernel.cache_info().compiles) == (3.0, 1)
    assert call(fresh()) == 2.0


def test_a_kept_program_drifts_like_one_that_was_compiled(fresh: Any) -> None:
    assert call(fresh()) == 2.0
    module = fresh()
    assert [call(module) for _ in range(5)] == [2.0] * 5
    module.helper_of_a_test.FACTOR = 3.0
    with pytest.raises(RuntimeError, match="global `FACTOR`, which `scaled` of module helper_of_a_test reads, was 2.0"):
        call(module)
    module.helper_of_a_test.FACTOR = 2.0
    assert (call(module), module.kernel.cache_info().compiles) == (2.0, 0)


def test_errors_of_kept_programs_are_found_the_native_way_too(fresh: Any) -> None:
    assert call(fresh()) == 2.0
    module = fresh()
    assert [call(module) for _ in range(5)] == [2.0] * 5
    with pytest.raises(ExecutionError, match=r"kernels.py:21:13: in kernel `kernel`: axis 0: a load of 1 element"):
        call(module, 9)


def test_a_cache_that_cannot_be_written_warns_once(
    checkout: Path, fresh: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(CacheWarning) as told:
        assert [call(fresh()), call(fresh())] == [2.0, 2.0]
    assert len(told) == 1
