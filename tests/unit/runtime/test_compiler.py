"""Compiling: platforms, stages, and that native code is what runs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from unit.runtime.programs import HALVES, SEVERAL, program_of, rows

import tilewright.runtime
from tilewright import ir
from tilewright.ir.pass_manager import PassManager
from tilewright.ir.passes import CallbackInstrument
from tilewright.runtime import compiler
from tilewright.runtime.platforms import PLATFORMS
from tilewright.runtime.remade import Remade

X = rows(12)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_platform_computes_the_same_and_keeps_its_name(platform: str) -> None:
    compiled = ir.compile(program_of(HALVES), platform=platform)
    assert compiled.platform == platform
    np.testing.assert_array_equal(compiled(X, 0), X / 2)


def test_a_program_runs_natively_unless_told_otherwise() -> None:
    assert ir.compile(program_of(HALVES)).platform == "cpu"
    assert tilewright.runtime.run(program_of(HALVES), X, 0).platform == "cpu"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_platform_but_the_interpreter_is_native(platform: str) -> None:
    compiled = ir.compile(program_of(HALVES), platform=platform)
    assert (compiled.artifact is None) == (platform == "interpret")


def test_an_unknown_platform_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown platform 'npu'; one of cpu, interpret, a2a3sim"):
        ir.compile(program_of(HALVES), platform="npu")


def test_elsewhere_the_interpreter_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "machine", lambda: "arm64")
    with pytest.raises(ValueError, match="not on linux and arm64: pass platform='interpret'"):
        ir.compile(program_of(HALVES))
    assert ir.compile(program_of(HALVES), platform="interpret").platform == "interpret"


def test_every_stage_can_be_read() -> None:
    stages = ir.compile(program_of(HALVES)).stages
    signs = {
        "program": "with pl.at(",
        "00_frontend": "with pl.at(",
        "14_after_PlanMemory": "pl.tile.load(",
        "ir": "pl.tile.load(",
        "llvm": "define ",
        "assembly": ".globl\tentry_main",
        "object": "entry_main",
        "metadata": '"schema": 1',
        "profile": "native code",
    }
    assert [name for name in stages if name in signs] == list(signs)
    assert not [name for name, sign in signs.items() if sign not in stages[name]]
    assert (
        stages["ir"] == stages["14_after_PlanMemory"] == str(PassManager.get_strategy().run_passes(program_of(HALVES)))
    )


def test_a_compiled_program_and_one_that_is_kept_show_the_same_stages() -> None:
    compiled = ir.compile(program_of(HALVES))
    remade = Remade(lambda: program_of(HALVES))
    assert [name for name in compiled.stages if name not in ("metadata", "profile")] == list(remade)
    assert not [name for name in remade if remade[name]() != compiled.stages[name]]


def test_the_profile_has_a_time_for_every_pass_and_for_the_code() -> None:
    profile = ir.compile(program_of(HALVES)).profile
    assert list(profile.seconds) == [*PassManager.get_strategy().pass_names, "native code", "load"]
    assert all(took > 0 for took in profile.seconds.values())


def test_looking_at_stages_again_tells_nobody_who_watches_the_passes() -> None:
    seen: list[str] = []
    with ir.PassContext([CallbackInstrument(after=lambda name, _: seen.append(name))]):
        compiled = ir.compile(program_of(HALVES))
        assert seen == PassManager.get_strategy().pass_names
        assert compiled.stages["05_after_Simplify"]
    assert seen == PassManager.get_strategy().pass_names


def test_a_stage_there_is_not_is_answered_with_those_there_are() -> None:
    with pytest.raises(
        KeyError, match="there is no stage 'ptx'; there are program, 00_frontend, .*, ir, llvm, assembly, object"
    ):
        ir.compile(program_of(HALVES)).stages["ptx"]


def test_only_what_a_caller_can_start_is_an_entry() -> None:
    for text, names in ((HALVES, ["main"]), (SEVERAL, ["double", "repeat"])):
        artifact = ir.compile(program_of(text)).artifact
        assert artifact is not None and list(artifact.code.symbols) == names


def test_importing_the_package_does_not_load_llvm_or_the_emitter() -> None:
    code = "import sys, tilewright.language, tilewright.ir, tilewright.runtime; "
    code += "print({'llvmlite', 'numpy', 'tilewright.backends.cpu.emit'} & sys.modules.keys())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
