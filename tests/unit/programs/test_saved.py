"""Saved programs: they run in another process without the compiler, and whatever is wrong with one is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.programs.programs import HALVES, SEVERAL, program_of, rows

from tilewright import ir
from tilewright.errors import ArtifactError, ExecutionError
from tilewright.ir import CompiledProgram
from tilewright.native.target import PRESETS
from tilewright.programs.artifact import Artifact
from tilewright.runtime import benchmark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A saved program."""
    ir.compile(program_of(HALVES)).save(tmp_path / "saved")
    return tmp_path / "saved"


def test_a_saved_program_is_two_files_and_computes_the_same(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["compiled_meta.json", "program.twar"]
    np.testing.assert_array_equal(CompiledProgram.load(folder)(rows(4), 0), rows(4) / 2)


def test_a_loaded_program_knows_all_that_a_caller_asks(folder: Path) -> None:
    compiled, loaded = ir.compile(program_of(HALVES)), CompiledProgram.load(folder)
    for name in ("param_names", "param_infos", "output_indices", "return_types", "platform", "entry_names"):
        assert getattr(loaded, name) == getattr(compiled, name), name
    assert loaded == folder and loaded.stages["metadata"] == (folder / "compiled_meta.json").read_text()


@pytest.mark.parametrize("platform", ["cpu", "a2a3sim"])
def test_the_platform_is_kept(platform: str, tmp_path: Path) -> None:
    ir.compile(program_of(HALVES), platform=platform).save(tmp_path)
    assert CompiledProgram.load(tmp_path).platform == platform


def test_numbers_that_it_was_compiled_for_are_kept(tmp_path: Path) -> None:
    compiled = ir.compile(program_of(HALVES))
    compiled.specialized["n"] = 0
    compiled.save(tmp_path)
    with pytest.raises(ValueError, match="`n` is 0 in this program, .*, got 1"):
        CompiledProgram.load(tmp_path)(rows(4), 1)


def test_errors_still_show_the_authors_line(folder: Path) -> None:
    with pytest.raises(ExecutionError, match=r"\[row, n\], out\)"):
        CompiledProgram.load(folder)(rows(8), 1)


def test_what_was_loaded_can_be_saved_again(folder: Path, tmp_path: Path) -> None:
    CompiledProgram.load(folder).save(tmp_path / "again")
    for name in ("compiled_meta.json", "program.twar"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_saving_over_another_program_replaces_it(folder: Path) -> None:
    ir.compile(program_of(SEVERAL)).save(folder)
    assert CompiledProgram.load(folder).entry_names == ["double", "repeat"]


def test_a_program_of_a_folder_has_no_source_but_all_that_a_caller_asks(tmp_path: Path) -> None:
    ir.compile(program_of(HALVES), output_dir=tmp_path, dump_passes=True)
    found: Any = CompiledProgram.from_dir(tmp_path)
    assert found.program is None and found.param_names == ["x", "n", "out"] and found.entry_names == ["main"]
    np.testing.assert_array_equal(found(rows(16), 0), rows(16) / 2)
    assert benchmark(found, [rows(16), 0], rounds=2).name == "Halves"
    expected = rows(16) / 2
    expected[0, 0] = np.nan
    assert "ConvertToSSA" in found.validate_ir([rows(16), 0], [expected])
    with pytest.raises(AssertionError, match="frontend changed the answer"):
        found.validate_ir([rows(16), 0], [expected + 1])


def test_a_folder_without_pass_dumps_cannot_be_validated(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no pass dump"):
        CompiledProgram.from_dir(folder).validate_ir([rows(16), 0])


def test_a_folder_is_read_under_another_name(tmp_path: Path) -> None:
    ir.compile(program_of(HALVES)).save(tmp_path)
    assert CompiledProgram.from_dir(tmp_path).platform == "cpu"
    named = CompiledProgram.from_dir(tmp_path, platform="a5sim")
    assert (named.platform, named.backend_type.name) == ("a5sim", "Ascend950")
    np.testing.assert_array_equal(named(rows(8), 0), rows(8) / 2)
    with pytest.raises(ValueError, match="holds code for the processor, which platform 'interpret' does not run"):
        CompiledProgram.from_dir(tmp_path, platform="interpret")
    with pytest.raises(ValueError, match="Invalid platform 'gpu'"):
        CompiledProgram.from_dir(tmp_path, platform="gpu")
    with pytest.raises(FileNotFoundError, match=r"compiled_meta\.json"):
        CompiledProgram.from_dir(tmp_path / "nowhere")


def test_the_interpreter_has_nothing_to_save(tmp_path: Path) -> None:
    compiled = ir.compile(program_of(HALVES), output_dir=tmp_path / "out", platform="interpret")
    with pytest.raises(ValueError, match="Halves runs on the interpreter: compile it for the processor to save it"):
        compiled.save(tmp_path / "saved")
    with pytest.raises(ArtifactError, match="holds a program for the interpreter, which has no code"):
        CompiledProgram.load(tmp_path / "out")


LOADING = """
import sys, time
import numpy as np
from tilewright.runtime import CompiledProgram
took = []
for _ in range(5):
    start = time.process_time()
    program = CompiledProgram.load(sys.argv[1])
    took.append(1e3 * (time.process_time() - start))
print(min(took))
x = np.arange(20 * 64, dtype=np.float32).reshape(20, 64)
assert (program(x, 0) == x / 2).all() and (program(n=0, x=x) == x / 2).all()
program.save(sys.argv[1] + ".again")
compiler = {"tilewright.backends.cpu.emit.function", "tilewright.programs.compiler", "tilewright.passes.manager"}
assert not {"llvmlite", "torch", *compiler} & sys.modules.keys(), compiler & sys.modules.keys()
"""


def test_another_process_loads_it_in_milliseconds_without_the_compiler(folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LOADING, str(folder)]
    run = subprocess.run(command, env=environment, text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 10, "of a processor's time: the machine may be busy"


# what is wrong with a folder


def test_a_folder_without_a_program_is_named(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(
            FileNotFoundError, match="no program was saved here: there is no compiled_meta.json"
        ) as caught:
            CompiledProgram.load(place)
        assert caught.value.filename == str(place)


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    plain = json.loads((folder / "compiled_meta.json").read_text())
    change(plain)
    (folder / "compiled_meta.json").write_text(json.dumps(plain))


def test_another_schema_is_named(folder: Path) -> None:
    changed(folder, lambda plain: plain.update(schema=99))
    with pytest.raises(ArtifactError, match="was saved with schema 99; this version reads 1"):
        CompiledProgram.load(folder)


@pytest.mark.parametrize("name", ["schema", "artifact", "platform", "specialized"])
def test_metadata_that_lacks_something_is_refused(name: str, folder: Path) -> None:
    changed(folder, lambda plain: plain.pop(name))
    with pytest.raises(ArtifactError, match=f"does not describe a program: .*'{name}'"):
        CompiledProgram.load(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '{"schema": 1, "artifact": 3}', '{"schema": {}}', "\xff"])
def test_metadata_that_is_none_is_refused(text: str, folder: Path) -> None:
    (folder / "compiled_meta.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ArtifactError, match="does not describe a program|was saved with schema"):
        CompiledProgram.load(folder)


def test_a_truncated_artifact_is_refused(folder: Path) -> None:
    data = (folder / "program.twar").read_bytes()
    for length in (0, 3, 30, len(data) // 2, len(data) - 1):
        (folder / "program.twar").write_bytes(data[:length])
        with pytest.raises(ArtifactError, match="cut off|not an artifact"):
            CompiledProgram.load(folder)


def test_a_missing_artifact_is_named(folder: Path) -> None:
    (folder / "program.twar").unlink()
    with pytest.raises(ArtifactError, match=r"is incomplete: program\.twar is missing"):
        CompiledProgram.load(folder)


def test_another_programs_artifact_is_noticed(folder: Path, tmp_path: Path) -> None:
    ir.compile(program_of(SEVERAL)).save(tmp_path / "other")
    (tmp_path / "other" / "program.twar").replace(folder / "program.twar")
    with pytest.raises(ArtifactError, match="is not the artifact that compiled_meta.json beside it describes"):
        CompiledProgram.load(folder)


def test_a_path_out_of_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "program.twar").rename(tmp_path / "elsewhere")
    changed(folder, lambda plain: plain["artifact"].update(file="../elsewhere"))
    with pytest.raises(ArtifactError, match="is missing"):
        CompiledProgram.load(folder)


def test_code_for_another_processor_is_named(tmp_path: Path) -> None:
    program = ir.compile(program_of(HALVES))
    for target, message in ((PRESETS["aarch64"], "it needs aarch64"), (lacking(), "code for next .* it needs avx99")):
        program.loaded.code = replace(program.loaded.code, target=target)
        program.save(tmp_path)
        assert Artifact.from_bytes((tmp_path / "program.twar").read_bytes()).code.target == target
        with pytest.raises(ArtifactError, match=message):
            CompiledProgram.load(tmp_path)


def lacking() -> Any:
    preset = PRESETS["x86-64-v3"]
    return replace(preset, cpu="next", features=f"{preset.features},+avx99")


def test_nothing_was_compiled_to_load_one(folder: Path) -> None:
    assert CompiledProgram.load(folder).stages["profile"] == "nothing was compiled: the program was kept\n"


DOUBLED = """
import tilewright.language as pl
M = pl.dynamic("M")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 8], pl.FP32]) -> pl.Tensor[[M * 2, 8], pl.FP32]:
        return pl.create_tensor([M * 2, 8], dtype=pl.FP32)
"""

LOADING_DOUBLED = """
import sys
import numpy as np
from tilewright.runtime import CompiledProgram
assert CompiledProgram.load(sys.argv[1])(np.ones((3, 8), np.float32)).shape == (6, 8)
"""


def test_a_result_whose_extent_is_computed_is_loaded_where_no_kernel_was_written(tmp_path: Path) -> None:
    ir.compile(program_of(DOUBLED)).save(tmp_path)
    subprocess.run(
        [sys.executable, "-c", LOADING_DOUBLED, tmp_path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
