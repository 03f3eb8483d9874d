"""What `source=` means: paths and text, and what becomes of files that change."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from unit.pto.jit.kernels import TEXT, copy_from

from tilewright import pto
from tilewright.pto.source import SETTLED_NS, Origin, is_text

pytestmark = pytest.mark.usefixtures("lowering")
ONE_LINE = TEXT.replace("\n", " ")


def write(path: Path, text: str, *, age: float = 1.0) -> Path:
    """Write a file that was changed some seconds ago."""
    path.write_text(text)
    then = path.stat().st_mtime_ns - int(age * 1e9)
    os.utime(path, ns=(then, then))
    return path


@pytest.mark.parametrize(
    "source",
    [
        TEXT,
        "\n",
        "a\rb",
        ONE_LINE,
        "module {}",
        "builtin.module { }",
        "module @m {}",
        "module attributes {pto.target_arch = \"a5\"} { }",
        "  builtin.module @m attributes {} {}",
        "func.func @f() { return }",
        "// text module { func.func @f() { return } }",
    ],
)  # fmt: skip
def test_text_is_told_from_paths(source: str) -> None:
    assert is_text(source)


@pytest.mark.parametrize("source", ["kernel.pto", "./a b/module.pto", "module", "module.pto", "func.func", "", "{}"])
def test_paths_are_told_from_text(source: str) -> None:
    assert not is_text(source)


def test_relative_paths_start_beside_the_declaring_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    handle = copy_from("nowhere/copy.pto")
    with pytest.raises(FileNotFoundError, match=str(Path(__file__).parent / "nowhere" / "copy.pto")):
        handle.compile()


def test_relative_paths_start_from_here_where_no_file_declares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "kernel.pto", "module {\n  func.func @kernel() {\n    return\n  }\n}\n")
    scope = {"pto": pto}
    exec("@pto.jit(source='kernel.pto')\ndef kernel(): ...\n", scope)
    handle: object = scope["kernel"]
    assert isinstance(handle, pto.KernelHandle)
    assert handle.build_metadata()["source"] == str(tmp_path / "kernel.pto")


def test_a_file_and_its_text_say_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "copy.pto", TEXT)
    by_path, inline = copy_from(str(path)), copy_from(TEXT)
    assert by_path.mlir_text() == inline.mlir_text() == TEXT
    assert by_path.specialization_key.digest == inline.specialization_key.digest


def test_text_is_shown_as_it_was_written(tmp_path: Path) -> None:
    text = f"// a comment\r\n{TEXT}  \n"
    handle = copy_from(text)
    assert str(handle) == handle.mlir_text() == str(handle.compile()) == text
    assert handle.emit(tmp_path / "deep" / "copy.pto").read_bytes() == text.encode()


def test_inline_text_goes_by_its_digest() -> None:
    handle = copy_from(TEXT)
    assert handle.build_metadata()["source"] == f"<pto {handle.specialization_key.digest[:12]}>"


def test_unchanged_files_give_the_same_object(tmp_path: Path) -> None:
    path = write(tmp_path / "copy.pto", TEXT)
    handle = copy_from(str(path))
    compiled = handle.compile()
    path.touch()
    assert handle.compile() is compiled
    assert handle.cached_specializations() == (compiled,)


def test_an_edited_file_is_another_specialization(tmp_path: Path, lowering: list[object]) -> None:
    path = write(tmp_path / "copy.pto", TEXT)
    handle = copy_from(str(path))
    old = handle.compile()
    path.write_text("// edited\n" + TEXT)
    new = handle.compile()
    assert new is not old and old.specialization_key != new.specialization_key
    assert handle.cached_specializations() == (old, new)
    assert old.mlir_text() == TEXT
    path.write_text(TEXT)
    assert handle.compile() is old
    assert len(lowering) == 2


def test_launches_follow_an_edited_file(tmp_path: Path) -> None:
    path = write(tmp_path / "copy.pto", TEXT)
    handle = copy_from(str(path))
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    handle[4, None](x, out, 0)
    old = handle.compile()
    write(path, TEXT.replace("index", "i64 "))
    with pytest.raises(TypeError, match="parameter 2 differs; expected index, got i64"):
        handle[4, None](x, out, 0)
    old[8, None](x, out, 0)
    assert out.tolist() == x.tolist()
    write(path, TEXT)
    handle[4, None](x, out, 0)


@pytest.mark.parametrize("launches", [0, 1, 6])
def test_a_launch_that_somebody_holds_follows_an_edited_file(tmp_path: Path, launches: int) -> None:
    path = write(tmp_path / "copy.pto", TEXT)
    handle = copy_from(str(path))
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    held, kept = handle[4, None], handle.compile()[4, None]
    for _ in range(launches):
        held(x, out, 0)
    write(path, TEXT.replace("index", "i64 "))
    with pytest.raises(TypeError, match="parameter 2 differs; expected index, got i64"):
        held(x, out, 0)
    kept(x, out, 0)
    write(path, TEXT)
    held(x, out, 0)


def test_a_launch_reads_a_file_that_has_just_changed(tmp_path: Path) -> None:
    path = write(tmp_path / "copy.pto", TEXT, age=-600)  # however long the launch takes
    handle = copy_from(str(path))
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    handle[4, None](x, out, 0)
    before = path.stat()
    path.write_text(TEXT.replace("index", "i64  "))  # as long as before
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert Origin.of(str(path), tmp_path).read().stamp is None
    with pytest.raises(TypeError, match="parameter 2 differs"):
        handle[4, None](x, out, 0)


def test_a_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    path = write(tmp_path / "copy.pto", TEXT, age=2 * SETTLED_NS / 1e9)
    handle = copy_from(str(path))
    handle.compile()
    path.unlink()
    with pytest.raises(FileNotFoundError, match="No such file"):
        handle[1, None](1, 2, 3)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000], ids=["null", "surrogate", "long"])
def test_a_path_that_no_file_can_have_is_missed(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="cannot be read"):
        copy_from(name).compile()


def test_a_path_that_links_to_itself_is_missed(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(FileNotFoundError, match="cannot be read"):
        copy_from(str(tmp_path / "loop")).compile()


def test_what_is_not_text_is_no_file_of_it(tmp_path: Path) -> None:
    path = tmp_path / "copy.pto"
    path.write_bytes(b"module {\xff}")
    with pytest.raises(FileNotFoundError, match="not UTF-8"):
        copy_from(str(path)).compile()


def test_a_file_read_by_many_threads_is_compiled_once(tmp_path: Path, lowering: list[object]) -> None:
    handle = copy_from(str(write(tmp_path / "copy.pto", TEXT)))
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(handle.compile())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1 and len(found) == 8
    assert len(lowering) == 1


def test_parse_takes_text_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "copy.pto", TEXT)
    for source in (TEXT, ONE_LINE, path, str(path), "copy.pto"):
        assert [func.name for func in pto.parse(source).funcs()] == ["copy"]
