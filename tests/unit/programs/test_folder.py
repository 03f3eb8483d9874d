"""Folders: a compiled program as a path, written when used as one, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from unit.programs.programs import HALVES, SEVERAL, program_of, rows, stage_after

from tilewright import ir
from tilewright.core.program import Program
from tilewright.errors import TilewrightError
from tilewright.ir import CompiledProgram
from tilewright.ir.pass_manager import PassDumpLevel, PassManager
from tilewright.ir.passes import CallbackInstrument
from tilewright.programs.folder import publish

OURS = {
    *("program.py", "ir.py", "tiles.txt", "fusion.txt", "program.ll", "program.s", "object.txt", "run.py"),
    *("compiled_meta.json", "program.twar", "passes_dump", "report"),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.delenv("TILEWRIGHT_BUILD_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_compiling_running_and_comparing_write_nothing(here: Path) -> None:
    compiled = ir.compile(program_of(HALVES))
    compiled(rows(4), 0)
    assert compiled.stages["llvm"] and repr(compiled) == "CompiledProgram('Halves', platform='cpu')"
    assert compiled == compiled and compiled != ir.compile(program_of(HALVES)) and compiled != "build_output"
    assert {compiled: 1}[compiled] == 1
    assert not list(here.iterdir())


def test_the_first_use_as_a_path_writes_everything_a_person_wants_to_open(here: Path) -> None:
    compiled = ir.compile(program_of(HALVES))
    folder = Path(compiled)
    assert folder.parent == here / "build_output" and folder.name.startswith("Halves_20")
    assert {path.name for path in folder.iterdir()} == OURS
    assert (folder / "program.ll").read_text() == compiled.stages["llvm"]
    stage = stage_after("Simplify")
    assert (folder / "passes_dump" / f"{stage}.py").read_text() == compiled.stages[stage]
    assert len(list((folder / "passes_dump").iterdir())) == len(PassManager.get_strategy().passes) + 1
    assert "LLVM" in (folder / "report" / "pipeline_profile.txt").read_text()
    assert json.loads((folder / "report" / "pipeline_profile.json").read_text())["stages"]["LLVM"] > 0


def test_every_way_to_a_path_gives_the_same_one() -> None:
    compiled = ir.compile(program_of(HALVES))
    path = str(compiled)
    assert os.fspath(compiled) == path == str(compiled.output_dir) == f"{compiled}"
    assert os.path.join(compiled, "program.ll") == os.path.join(path, "program.ll")
    assert repr(compiled) == f"CompiledProgram({path})"
    with open(os.path.join(compiled, "program.ll"), encoding="utf-8") as file:
        assert file.read() == compiled.stages["llvm"]


def test_the_build_directory_is_a_setting(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_BUILD_DIR", str(here / "elsewhere"))
    assert ir.compile(program_of(HALVES)).output_dir.parent == here / "elsewhere"


def test_two_programs_of_one_name_have_folders_of_their_own() -> None:
    first, second = (ir.compile(program_of(HALVES)) for _ in range(2))
    assert hash(first) != hash(second) and first != second and str(first) != str(second)


def test_programs_equal_those_with_the_same_folder_and_its_path(here: Path) -> None:
    first, second = (ir.compile(program_of(HALVES), output_dir="out") for _ in range(2))
    assert first == second == "out" and first == here / "out" and first == str(here / "out")
    assert hash(first) == hash(second) == hash(str(first))
    assert first != "other" and first != 3 and first != ir.compile(program_of(HALVES))


def test_a_given_folder_is_written_at_once_and_stays_where_it_was(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ir.compile(program_of(HALVES), output_dir="a/b")
    assert {path.name for path in (here / "a" / "b").iterdir()} == OURS
    monkeypatch.chdir("/")
    assert str(compiled) == str(here / "a" / "b")


def test_another_program_in_the_same_folder_leaves_other_files_alone(here: Path) -> None:
    ir.compile(program_of(SEVERAL), output_dir="out")
    (here / "out" / "notes.txt").write_text("mine")
    (here / "out" / "passes_dump" / "99_after_Old.py").write_text("")
    ir.compile(program_of(HALVES), output_dir="out")
    assert {path.name for path in (here / "out").iterdir()} == {*OURS, "notes.txt"}
    assert not (here / "out" / "passes_dump" / "99_after_Old.py").exists()
    assert CompiledProgram.load("out").program.name == "Halves"


def test_a_deleted_folder_is_written_again(here: Path) -> None:
    compiled = ir.compile(program_of(HALVES), output_dir="out")
    shutil.rmtree(here / "out")
    assert {path.name for path in Path(compiled).iterdir()} == OURS


def test_a_folder_is_deleted_by_what_stands_for_it(here: Path) -> None:
    compiled = ir.compile(program_of(HALVES), output_dir="out")
    shutil.rmtree(compiled)
    assert not (here / "out").exists()
    assert {path.name for path in Path(compiled).iterdir()} == OURS


def test_a_place_that_cannot_be_written_is_named(here: Path) -> None:
    (here / "file").write_text("")
    for place in ("file", "file/below"):
        with pytest.raises(OSError, match=rf"cannot write '{here}/{place}': .*; pass output_dir=, or set TILEWRIGHT"):
            ir.compile(program_of(HALVES), output_dir=place)
    assert [path.name for path in here.iterdir()] == ["file"]


def test_a_folder_appears_whole_or_not_at_all(here: Path) -> None:
    with pytest.raises(OSError, match="cannot write"):
        publish(here / "out", {"one": b"1", "one/two": b"2"})
    assert not list(here.iterdir())


def test_the_interpreter_has_a_folder_without_code(here: Path) -> None:
    folder = Path(ir.compile(program_of(HALVES), output_dir="out", platform="interpret"))
    assert {path.name for path in folder.iterdir()} == OURS - {
        "tiles.txt",
        "fusion.txt",
        "program.ll",
        "program.s",
        "object.txt",
        "program.twar",
    }


def test_dumping_passes_alone_asks_for_a_folder(here: Path) -> None:
    ir.compile(program_of(HALVES), dump_passes=True)
    ir.compile(program_of(HALVES), dump_passes=PassDumpLevel.NONE)
    (folder,) = (here / "build_output").iterdir()
    assert (folder / "passes_dump" / "00_frontend.py").exists()


def test_concise_dumps_leave_types_of_locals_out(here: Path) -> None:
    sizes: list[int] = []
    for level in (PassDumpLevel.CONCISE, PassDumpLevel.EXPLICIT):
        compiled = ir.compile(program_of(HALVES), output_dir=level.value, dump_passes=level)
        sizes.append((compiled.output_dir / "passes_dump" / f"{stage_after('Simplify')}.py").stat().st_size)
    assert sizes[0] < sizes[1]


def test_a_pass_that_fails_leaves_its_input_to_be_read(here: Path) -> None:
    def fail(name: str, _: Program) -> None:
        if name == "Simplify":
            raise TilewrightError("no")

    with ir.PassContext([CallbackInstrument(before=fail)]), pytest.raises(TilewrightError):
        ir.compile(program_of(HALVES), output_dir="out", dump_passes=True)
    assert sorted(path.stem for path in (here / "out" / "passes_dump").iterdir())[-1] == stage_after("UnrollLoops")


def test_a_folder_is_a_saved_program(here: Path) -> None:
    loaded = CompiledProgram.load(ir.compile(program_of(HALVES), output_dir="out"))
    np.testing.assert_array_equal(loaded(rows(4), 0), rows(4) / 2)
    assert loaded == "out" and {path.name for path in Path(loaded).iterdir()} == OURS
