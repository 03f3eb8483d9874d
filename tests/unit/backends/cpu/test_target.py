"""Targets: presets, the host, and what cannot run here."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.native import target
from tilewright.native.target import PRESETS, by_name, fingerprint, host, missing_features, processor_of

INTEL = "flags\t: lm sse sse2 pni ssse3 sse4_1 sse4_2 avx fma f16c avx2 bmi1 bmi2 abm movbe cx16 cx8\n\nflags\t: none\n"


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A processor with AVX2 and without AVX-512."""
    path = tmp_path / "cpuinfo"
    path.write_text(INTEL)
    monkeypatch.setattr(target, "CPUINFO", path)
    monkeypatch.setattr(target, "_cpuinfo", target._cpuinfo.__wrapped__)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(target, "cpu_flags", target.cpu_flags.__wrapped__)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return path


@pytest.mark.parametrize(("name", "bits"), [("x86-64", 128), ("x86-64-v3", 256), ("x86-64-v4", 512), ("aarch64", 128)])
def test_a_preset_knows_its_vectors(name: str, bits: int) -> None:
    assert by_name(name).vector_bits == bits


def test_presets_know_their_conversions_and_fused_arithmetic() -> None:
    facts = {name: (t.has_fma, t.has_f16c, t.has_avx512bf16) for name, t in PRESETS.items()}
    assert facts == {
        "x86-64": (False, False, False),
        "x86-64-v3": (True, True, False),
        "x86-64-v4": (True, True, False),
        "aarch64": (True, True, False),
    }


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'avx9': there are host, x86-64, x86-64-v3"):
        by_name("avx9")


def test_code_for_the_host_runs_here() -> None:
    assert missing_features(host()) == []
    assert host().machine == platform.machine()
    assert host().l2_bytes >= 1 << 16


def test_features_are_in_order() -> None:
    names = [feature[1:] for feature in host().features.split(",")]
    assert names == sorted(names)


def test_missing_features_are_named_as_llvm_names_them(cpuinfo: Path) -> None:
    missing = missing_features(PRESETS["x86-64-v4"])
    assert {"avx512f", "avx512bw"} <= set(missing)
    assert not {"avx2", "bmi", "lzcnt", "sse3", "sse4.1", "crc32", "fma"} & set(missing)


def test_another_architecture_is_the_only_reason_given(cpuinfo: Path) -> None:
    assert missing_features(PRESETS["aarch64"]) == ["aarch64 (this processor is x86_64)"]


def test_without_cpuinfo_nothing_is_known_to_be_missing(cpuinfo: Path) -> None:
    cpuinfo.unlink()
    assert missing_features(PRESETS["x86-64-v4"]) == []


def test_the_host_uses_only_what_the_kernel_lists(cpuinfo: Path) -> None:
    assert host.__wrapped__().vector_bits <= 256


def test_the_fingerprint_changes_with_the_processor(cpuinfo: Path) -> None:
    before = fingerprint.__wrapped__()
    cpuinfo.write_text(INTEL.replace("avx2", "avx2 avx512f"))
    assert fingerprint.__wrapped__() != before


def test_checking_features_does_not_load_llvm() -> None:
    code = "import sys; from tilewright.native.target import *; missing_features(PRESETS['x86-64-v4']); "
    code += "fingerprint(); print('llvmlite' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


@pytest.mark.parametrize(
    ("cpu", "fetches"),
    [("sapphirerapids", True), ("icelake-server", True), ("haswell", True), ("znver5", False), ("x86-64-v3", False)],
)
def test_processors_that_fetch_along_rows_are_known_by_name(cpu: str, fetches: bool) -> None:
    assert replace(PRESETS["x86-64-v3"], cpu=cpu).fetches_along_rows == fetches


@pytest.mark.parametrize(
    ("name", "has_tiles", "expected"),
    [
        ("rocketlake", True, "sapphirerapids"),
        ("graniterapids", True, "graniterapids"),
        ("rocketlake", False, "rocketlake"),
        ("znver5", False, "znver5"),
    ],
)
def test_a_processor_is_as_new_as_its_matrix_tiles(name: str, has_tiles: bool, expected: str) -> None:
    assert processor_of(name, {"amx-tile": has_tiles}) == expected
