"""Matrix units are used where the processor, the kernel, a trial and the settings agree, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.backends.cpu.backend import BACKEND
from tilewright.core.program import Program
from tilewright.errors import ArtifactError
from tilewright.frontend.programs import as_program
from tilewright.native import matrix_units, tile_trials
from tilewright.native.assemble import assemble
from tilewright.native.target import PRESETS, Target, normalized
from tilewright.passes.manager import PassManager

V4 = PRESETS["x86-64-v4"]
TEXT = """
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[64, 64], pl.BF16], b: pl.Tensor[[64, 64], pl.BF16],
             c: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store({0}, [0, 0], c)
"""
PRODUCT = "pl.matmul(pl.load(a, [0, 0], [64, 64]), pl.load(b, [0, 0], [64, 64]))"
SUM = "pl.cast(pl.load(a, [0, 0], [64, 64]), pl.FP32)"


def with_amx() -> Target:
    """Return a processor with matrix tiles, which this one may be."""
    features = [*V4.features.split(","), "+amx-tile", "+amx-bf16", "+amx-int8", "+avx512bf16"]
    return replace(V4, cpu="sapphirerapids", features=normalized({each[1:]: True for each in features}))


def _lowered(value: str) -> Program:
    """Return a lowered program that stores a value."""
    return PassManager.get_strategy().run_passes(as_program(pl.parse(TEXT.format(value))))


def _nothing(_target: Target) -> list[str]:
    """Return what a processor with AMX lacks."""
    return []


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let what was found out before be found out anew, as if nobody had set anything."""
    monkeypatch.delenv("TILEWRIGHT_AMX", raising=False)
    matrix_units._objection.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield
    matrix_units._objection.cache_clear()  # pyright: ignore[reportPrivateUsage]


def a_machine_with_amx(monkeypatch: pytest.MonkeyPatch, *, grants: bool = True, works: bool = True) -> None:
    """Let this machine seem to have AMX."""
    monkeypatch.setattr(matrix_units, "cpu_flags", lambda: frozenset({"amxtile", "amxbf16", "amxint8"}))
    monkeypatch.setattr(matrix_units, "_answers", {0x1021: grants, 0x1022: False}.__getitem__)
    monkeypatch.setattr(tile_trials, "passed", lambda: works)


def test_a_machine_on_which_all_agree_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    before = matrix_units.own_fingerprint()
    a_machine_with_amx(monkeypatch)
    matrix_units._objection.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert matrix_units.objection() == ""
    assert matrix_units.own_target().has_amx and matrix_units.own_target().has("amx-int8")
    assert matrix_units.amx() == ("amx_bf16", "amx_int8", "amx_tile")
    assert matrix_units.own_fingerprint() == f"{before.removesuffix(' AMX')} AMX"


@pytest.mark.parametrize(
    ("grants", "works", "setting", "why"),
    [
        (False, True, "on", "this kernel does not let processes use AMX"),
        (True, False, "on", "AMX does not work here: a trial of it failed"),
        (True, True, "off", "TILEWRIGHT_AMX is off"),
    ],
)
def test_one_objection_is_enough(
    grants: bool, works: bool, setting: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_machine_with_amx(monkeypatch, grants=grants, works=works)
    monkeypatch.setenv("TILEWRIGHT_AMX", setting)
    assert matrix_units.objection() == why
    assert not matrix_units.own_target().has_amx
    assert not matrix_units.own_fingerprint().endswith("AMX")


@pytest.mark.parametrize(("value", "needs"), [(PRODUCT, True), (SUM, False)])
def test_code_that_multiplies_nothing_needs_none(value: str, needs: bool) -> None:
    lowered = _lowered(value)
    code = BACKEND.compile(lowered, target=with_amx())
    assert code.target.has_amx == needs
    assert ("tdpbf16ps" in code.texts["assembly"]()) == needs
    assert ("products of bfloat16 on AMX's tiles" in code.texts["tiles"]()) == needs


def test_code_that_needs_them_is_not_loaded_where_they_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = _lowered(PRODUCT)
    code = BACKEND.compile(lowered, target=with_amx())
    monkeypatch.setattr("tilewright.backends.cpu.backend.missing_features", _nothing)
    monkeypatch.setenv("TILEWRIGHT_AMX", "off")
    with pytest.raises(ArtifactError, match="with AMX cannot run here: TILEWRIGHT_AMX is off"):
        BACKEND.load(lowered, code)
    monkeypatch.delenv("TILEWRIGHT_AMX")
    monkeypatch.setattr(matrix_units, "objection", lambda: "")
    monkeypatch.setattr(matrix_units, "refusal", lambda: "this process may not use it")
    with pytest.raises(ArtifactError, match="this process may not use it"):
        BACKEND.load(lowered, code)


def test_emulated_tiles_are_said_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_AMX", "emulated")
    compiled = ir.compile(pl.parse(TEXT.format(PRODUCT)), platform="cpu")
    assert "products of bfloat16 on emulated tiles" in compiled.stages["tiles"]
    a, c = np.full((64, 64), 0.5, pl.BF16.numpy), np.zeros((64, 64), np.float32)
    compiled(a, a, c)
    assert (c == 16).all()


# trials


def test_what_a_trial_runs_is_what_its_text_says() -> None:
    assert tile_trials.CODE in assemble(tile_trials.TEXT, with_amx()).object


def test_a_trial_without_amx_fails_and_ends_nobody() -> None:
    assert tile_trials.tried() == (not matrix_units.objection())


def test_the_outcome_is_remembered_until_the_machine_starts_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boot, tries = tmp_path / "boot", list[bool]()
    boot.write_text("first")

    def tried() -> bool:
        tries.append(True)
        return True

    monkeypatch.setattr(tile_trials, "tried", tried)
    monkeypatch.setattr(tile_trials, "BOOT", str(boot))
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    assert tile_trials.passed() and tile_trials.passed() and len(tries) == 1
    boot.write_text("second")
    assert tile_trials.passed() and len(tries) == 2
    (tmp_path / "cache" / tile_trials.FILE).write_bytes(b"\xff\xfe")
    assert tile_trials.passed() and len(tries) == 3
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "off")
    assert tile_trials.passed() and tile_trials.passed() and len(tries) == 5
