"""Metadata: what a program says of its parameters, and the types that a user's checker sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from unit.programs.programs import HALVES, SEVERAL, program_of

from tilewright import ir
from tilewright.core.types import tensor
from tilewright.dtypes import BF16, FP32, INDEX, INT32
from tilewright.ir import ParamDirection
from tilewright.ir.compiled_program import ParamInfo, extract_param_infos


def test_parameters_are_named_with_direction_shape_and_type() -> None:
    compiled = ir.compile(program_of(HALVES))
    assert compiled.param_names == ["x", "n", "out"]
    assert compiled.param_infos == [
        ParamInfo("x", ParamDirection.In, (-1, 64), FP32, ("M", 64)),
        ParamInfo("n", ParamDirection.In, None, INDEX),
        ParamInfo("out", ParamDirection.Out, (-1, 64), FP32, ("M", 64)),
    ]
    assert (compiled.output_indices, compiled.has_return, compiled.platform) == ([2], True, "cpu")
    assert [type_.dtype for type_ in compiled.return_types if isinstance(type_, ir.TensorType)] == [FP32]


def test_each_entry_has_its_own() -> None:
    compiled = ir.compile(program_of(SEVERAL))
    double, repeat = compiled.double, compiled["repeat"]
    assert double.param_infos[0] == ParamInfo("x", ParamDirection.InOut, (4,), INT32, (4,))
    assert (double.output_indices, len(double.return_types)) == ([], 2)
    assert repeat.param_infos[1] == ParamInfo("out", ParamDirection.Out, (-1,), BF16, ("(M * 2) + 1",))
    assert repeat.output_indices == [1]


def test_a_program_says_the_same_before_it_is_compiled() -> None:
    infos, outputs, returns = extract_param_infos(program_of(HALVES))
    compiled = ir.compile(program_of(HALVES))
    assert (infos, outputs, returns) == (compiled.param_infos, compiled.output_indices, compiled.return_types)


def test_a_function_alone_is_its_own_entry() -> None:
    x = ir.Var("x", tensor([4], FP32))
    infos, outputs, returns = extract_param_infos(ir.Program("P", (ir.Function("f", (x,)),)))
    assert (infos, outputs, returns) == ([ParamInfo("x", ParamDirection.In, (4,), FP32, (4,))], [], ())


USER = """
import os
from collections.abc import Mapping
from pathlib import Path

from typing_extensions import assert_type

import tilewright.language as pl
from tilewright import ir
from tilewright.ir import CompiledProgram, DataType, OptimizationStrategy, ParamDirection
from tilewright.ir.compiled_program import Entry, ParamInfo, extract_param_infos
from tilewright.runtime import BackendType


def look(program: ir.Program, directory: Path) -> None:
    compiled = ir.compile(program, output_dir=directory, strategy=OptimizationStrategy.Default, platform="cpu")
    assert_type(compiled, CompiledProgram)
    assert_type(compiled.param_names, list[str])
    assert_type(compiled.param_infos, list[ParamInfo])
    assert_type(compiled.output_indices, list[int])
    assert_type(compiled.return_types, tuple[ir.Type, ...])
    assert_type(compiled.platform, str)
    assert_type(compiled.has_return, bool)
    assert_type(compiled.output_dir, Path)
    assert_type(os.fspath(compiled), str)
    assert_type(os.path.join(compiled, "program.ll"), str)
    assert_type(compiled.stages["llvm"], str)
    assert_type(compiled["main"], Entry)
    assert_type(compiled["main"].param_names, list[str])
    assert_type(CompiledProgram.load(compiled), CompiledProgram)
    assert_type(CompiledProgram.from_dir(directory, platform="a5sim"), CompiledProgram)
    assert_type(compiled.backend_type, BackendType)
    assert_type(ir.compile(program, profiling=True, platform=None, memory_planner=None, runtime=None), CompiledProgram)
    assert_type(compiled.profile.seconds, dict[str, float])
    assert_type(compiled.save("there"), None)
    stages: Mapping[str, str] = compiled.stages
    paths: list[os.PathLike[str]] = [compiled, directory]
    print(stages, paths, open(compiled), Path(compiled) / "run.py")
    for info in extract_param_infos(program)[0]:
        assert_type(info.direction, ParamDirection)
        assert_type(info.dims, tuple[int | str, ...] | None)
        assert_type(info.dtype, DataType)


def mistakes(compiled: CompiledProgram) -> None:
    compiled.param_names = []  # mistake
    compiled.load(3)  # mistake
    ir.compile("text")  # mistake
    ir.compile(pl.parse(""), profiling="yes")  # mistake
    ir.compile(pl.parse(""), speed=3)  # mistake
    ir.compile(pl.parse(""), output_dir=3)  # mistake
"""


@pytest.mark.slow
def test_a_users_type_checker_sees_what_everything_is(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright")
    path, source = tmp_path / "user.py", Path(ir.__file__).parents[2]
    path.write_text(USER)
    (tmp_path / "pyrightconfig.json").write_text(f'{{"typeCheckingMode": "strict", "extraPaths": ["{source}"]}}')
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    shown = subprocess.run(command, text=True, capture_output=True).stdout
    wrong = [number for number, line in enumerate(USER.splitlines(), start=1) if line.endswith("# mistake")]
    assert {int(line.split(":")[1]) for line in shown.splitlines() if " - error: " in line} == set(wrong), shown
