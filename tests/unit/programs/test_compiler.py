"""Compiling: platforms, stages, and that native code is what runs."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.programs.programs import HALVES, SEVERAL, program_of, rows, stage_after

import tilewright.runtime
from tilewright import ir
from tilewright.backends.cpu.backend import CPU
from tilewright.backends.interface import takes
from tilewright.ir.pass_manager import PassManager
from tilewright.ir.passes import CallbackInstrument
from tilewright.programs.platforms import BackendType, backend_for, platforms
from tilewright.programs.stages import Remade
from tilewright.runtime import RunConfig

X = rows(12)


HERE = [platform for platform in platforms() if takes(backend_for(platform), "cpu")]
"""The platforms whose programs take memory of the host."""


@pytest.mark.parametrize("platform", HERE)
def test_every_platform_computes_the_same_and_keeps_its_name(platform: str) -> None:
    compiled = ir.compile(program_of(HALVES), platform=platform)
    assert compiled.platform == platform
    np.testing.assert_array_equal(compiled(X, 0), X / 2)


def test_a_program_runs_natively_unless_told_otherwise() -> None:
    assert ir.compile(program_of(HALVES)).platform == "cpu"
    assert tilewright.runtime.run(program_of(HALVES), X, 0).platform == "cpu"


@pytest.mark.parametrize("platform", HERE)
def test_every_platform_but_the_interpreter_is_native(platform: str) -> None:
    compiled = ir.compile(program_of(HALVES), platform=platform)
    assert (compiled.artifact is None) == (platform == "interpret")


def test_an_unknown_platform_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="Invalid platform 'npu'; one of cpu, interpret, cuda, a2a3sim"):
        ir.compile(program_of(HALVES), platform="npu")


def test_every_stage_can_be_read() -> None:
    stages = ir.compile(program_of(HALVES)).stages
    signs = {
        "program": "with pl.at(",
        "00_frontend": "with pl.at(",
        stage_after("CheckDefined"): "pl.tile.load(",
        "ir": "pl.tile.load(",
        "tiles": "every tile is as it was written",
        "fusion": "ends: nothing follows",
        "llvm": "define ",
        "assembly": ".globl\tentry_main",
        "object": "entry_main",
        "metadata": '"schema": 1',
        "profile": "emission",
    }
    assert [name for name in stages if name in signs] == list(signs)
    assert not [name for name, sign in signs.items() if sign not in stages[name]]
    assert (
        stages["ir"]
        == stages[stage_after("CheckDefined")]
        == str(PassManager.get_strategy().run_passes(program_of(HALVES)))
    )


def test_a_compiled_program_and_one_that_is_kept_show_the_same_stages() -> None:
    compiled = ir.compile(program_of(HALVES))
    remade = Remade(CPU(), lambda: program_of(HALVES))
    assert [name for name in compiled.stages if name not in ("metadata", "profile")] == list(remade)
    assert not [name for name in remade if remade[name]() != compiled.stages[name]]


def test_the_profile_has_a_time_for_every_pass_and_tells_our_part_from_llvms() -> None:
    profile = ir.compile(program_of(HALVES)).profile
    code = ["loading the compiler", "emission", "LLVM", "load"]
    assert list(profile.seconds) == [*PassManager.get_strategy().pass_names, *code]
    assert all(took > 0 for took in profile.seconds.values())


def test_profiling_writes_the_folder_with_the_time_of_every_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_BUILD_DIR", str(tmp_path))
    compiled = ir.compile(program_of(HALVES), profiling=True)
    (folder,) = tmp_path.iterdir()
    assert compiled == folder and (folder / "report" / "pipeline_profile.txt").read_text() == compiled.stages["profile"]


UPSTREAM: dict[str, Any] = {
    "output_dir": None, "strategy": ir.OptimizationStrategy.Default, "dump_passes": False,
    "backend_type": BackendType.Ascend910B, "skip_ptoas": False, "verification_level": None, "diagnostic_phase": None,
    "disabled_diagnostics": None, "memory_planner": None, "enable_pypto_l0c_double_buffer": None, "profiling": False,
    "platform": None, "distributed_config": None, "analyze_auto_scopes_for_deps": False, "emit_source_loc": None,
    "dump_ptoas_passes": False, "runtime": None,
}  # fmt: skip
"""The keywords of the PTO family's `ir.compile`, from the specification's section 4.1."""


def test_every_keyword_of_the_pto_family_is_accepted() -> None:
    compiled = ir.compile(program_of(HALVES), **UPSTREAM)
    assert (compiled.platform, compiled.backend_type) == ("cpu", BackendType.Ascend910B)
    more: dict[str, Any] = {
        "skip_ptoas": True,
        "memory_planner": "dsa_rp",
        "verification_level": "roundtrip",
        "emit_source_loc": True,
    }
    np.testing.assert_array_equal(ir.compile(program_of(HALVES), **(UPSTREAM | more))(X, 0), X / 2)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("memory_planner", "best", "memory_planner must be one of PYPTO, DSA_RP, PTOAS, got 'best'"),
        ("verification_level", 3, "verification_level must be one of NONE, BASIC, ROUNDTRIP, got 3"),
        ("backend_type", "gpu", "backend_type must be one of Ascend910B, Ascend950, got 'gpu'"),
        ("strategy", "fast", "strategy must be one of Default, got 'fast'"),
        ("dump_passes", "all", "dump_passes must be one of NONE, CONCISE, EXPLICIT, got 'all'"),
        ("output_dir", 3, "output_dir must be a path, got 3"),
        ("platform", "", "Invalid platform ''; one of cpu, interpret"),
        *((name, 2, f"{name} must be True or False, got 2") for name in (
            "skip_ptoas", "profiling", "analyze_auto_scopes_for_deps", "emit_source_loc", "dump_ptoas_passes",
            "enable_pypto_l0c_double_buffer",
        )),
    ],
)  # fmt: skip
def test_a_keyword_that_makes_no_sense_is_named(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        ir.compile(program_of(HALVES), **{name: value})
    assert message in str(caught.value)


def test_what_a_pass_context_has_decided_is_not_said_again() -> None:
    with ir.PassContext():
        for name in ("verification_level", "memory_planner", "diagnostic_phase", "disabled_diagnostics"):
            chosen: dict[str, Any] = {name: "BASIC" if name == "verification_level" else "PYPTO"}
            with pytest.raises(RuntimeError, match=f"compile: {name}= while a PassContext is active"):
                ir.compile(program_of(HALVES), **chosen)


def test_an_npu_is_named_by_its_platform_or_for_ours_by_itself() -> None:
    assert ir.compile(program_of(HALVES), platform="a5").backend_type is BackendType.Ascend950
    ours = ir.compile(program_of(HALVES), platform="cpu", backend_type=BackendType.Ascend950)
    assert (ours.platform, ours.backend_type) == ("cpu", BackendType.Ascend950)


SHARED = """
import tilewright.language as pl

@pl.jit
def copied(x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], out)
    return out
"""


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TILEWRIGHT_BUILD_DIR", str(tmp_path / "build"))
    (tmp_path / "shared.py").write_text(SHARED)
    names: dict[str, Any] = {}
    exec(builtins.compile(SHARED, str(tmp_path / "shared.py"), "exec"), names)
    return names["copied"]


def test_programs_are_shared_and_keep_the_name_they_were_asked_for_by(kernel: Any) -> None:
    simulated, plain = kernel.compile(config=RunConfig("a5sim")), kernel.compile()
    assert (simulated.platform, plain.platform) == ("a5sim", "cpu")
    assert simulated.backend_type is BackendType.Ascend950 and json.loads(simulated.stages["metadata"])["platform"]
    assert kernel.compile() is plain and kernel.compile(config=RunConfig("a5sim")) is simulated
    assert plain.native is simulated.native and kernel.cache_info().compiles == 1


def test_dumps_are_written_for_a_program_that_is_there_already(kernel: Any, tmp_path: Path) -> None:
    x = np.ones((8, 8), np.float32)
    plain = kernel.compile()
    kernel(x, config=RunConfig(save_kernels_dir=tmp_path / "here"))
    assert (tmp_path / "here" / "passes_dump" / "00_frontend.py").exists() and not (tmp_path / "build").exists()
    dumped = kernel.compile(config=RunConfig(dump_passes=True))
    assert dumped is plain and (dumped.output_dir / "passes_dump").is_dir()
    assert dumped.output_dir.parent == tmp_path / "build" and kernel.cache_info().compiles == 1


def test_looking_at_stages_again_tells_nobody_who_watches_the_passes() -> None:
    seen: list[str] = []
    with ir.PassContext([CallbackInstrument(after=lambda name, _: seen.append(name))]):
        compiled = ir.compile(program_of(HALVES))
        assert seen == PassManager.get_strategy().pass_names
        assert compiled.stages[stage_after("Simplify")]
    assert seen == PassManager.get_strategy().pass_names


def test_a_stage_there_is_not_is_answered_with_those_there_are() -> None:
    with pytest.raises(
        KeyError, match=r"there is no stage 'ptx'; there are program, 00_frontend, .*, fusion, llvm, assembly, object"
    ):
        ir.compile(program_of(HALVES)).stages["ptx"]


def test_only_what_a_caller_can_start_is_an_entry() -> None:
    for text, names in ((HALVES, ["main"]), (SEVERAL, ["double", "repeat"])):
        artifact = ir.compile(program_of(text)).artifact
        assert artifact is not None and list(artifact.code.symbols) == names


def test_importing_the_package_does_not_load_llvm_or_the_emitter() -> None:
    code = "import sys, tilewright.language, tilewright.ir, tilewright.runtime; "
    code += "print({'llvmlite', 'numpy', 'tilewright.backends.cpu.emit.function'} & sys.modules.keys())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
