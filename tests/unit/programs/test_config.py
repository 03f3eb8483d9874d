"""Run configurations: every field of the PTO family's, checked, and what of them matters for code."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.errors import RaceError
from tilewright.ir import OptimizationStrategy
from tilewright.ir.pass_manager import PassDumpLevel
from tilewright.programs.platforms import BackendType, platforms
from tilewright.runtime import DistributedConfig, RunConfig

UPSTREAM: dict[str, Any] = {
    "device_id": 0,
    "rtol": 1e-5,
    "atol": 1e-5,
    "strategy": OptimizationStrategy.Default,
    "backend_type": BackendType.Ascend910B,
    "dump_passes": False,
    "save_kernels": False,
    "save_kernels_dir": None,
    "codegen_only": False,
    "enable_chip_swimlane": 0,
    "enable_dump_args": 0,
    "enable_pmu": 0,
    "enable_dep_gen": False,
    "enable_scope_stats": False,
    "compile_profiling": False,
    "diagnostic_phase": None,
    "disabled_diagnostics": None,
    "golden_data_dir": None,
    "aicpu_thread_num": None,
    "ring_task_window": None,
    "ring_heap": None,
    "ring_dep_pool": None,
    "distributed_config": None,
    "analyze_auto_scopes_for_deps": False,
    "memory_planner": None,
    "dump_ptoas_passes": False,
}
"""The fields of the PTO family's configuration and their defaults, from the specification's section 4.3."""


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_field_of_the_pto_family_is_accepted_with_its_default(name: str) -> None:
    assert getattr(RunConfig(), name) == UPSTREAM[name]
    assert RunConfig(**{name: UPSTREAM[name]}) == RunConfig()


@pytest.mark.parametrize("platform", platforms())
def test_a_platform_names_a_target_and_an_npu(platform: str) -> None:
    config = RunConfig(platform=platform)
    assert config.runs_on == (platform if platform in ("interpret", "cuda") else "cpu")
    assert config.backend_type is (BackendType.Ascend950 if "a5" in platform else BackendType.Ascend910B)


def test_spelling_does_not_matter() -> None:
    config = RunConfig(" A5Sim", strategy="default", save_kernels_dir=Path("out"), enable_pmu=True)  # pyright: ignore[reportArgumentType]
    same = RunConfig(platform="a5sim", save_kernels_dir="out", enable_pmu=1, save_kernels=True)
    assert config == same


def test_the_platform_decides_the_npu() -> None:
    assert RunConfig("a5", backend_type=BackendType.Ascend910B) == RunConfig("a5")


WRONG = [
    ("platform", "npu", "Invalid platform 'npu'; one of cpu, interpret, cuda, a2a3sim"),
    ("platform", 3, "Invalid platform 3"),
    ("device_id", -1, "device_id must be an integer, 0 or more, got -1"),
    ("device_id", True, "device_id must be an integer, 0 or more, got True"),
    ("rtol", -1e-3, "rtol must be a finite number, 0 or more, got -0.001"),
    ("atol", float("nan"), "atol must be a finite number, 0 or more, got nan"),
    ("strategy", "fast", "strategy must be one of Default, got 'fast'"),
    ("dump_passes", "all", "dump_passes must be one of NONE, CONCISE, EXPLICIT, got 'all'"),
    ("codegen_only", "yes", "codegen_only must be True or False, got 'yes'"),
    ("save_kernels_dir", 3, "save_kernels_dir must be a path, got 3"),
    ("aicpu_thread_num", 0, "aicpu_thread_num must be an integer above 0, got 0"),
    ("enable_chip_swimlane", 5, r"enable_chip_swimlane must be an integer in \[0, 4\], got 5"),
    ("enable_dump_args", 3, r"enable_dump_args must be an integer in \[0, 2\], got 3"),
    ("ring_heap", True, "ring_heap must be a power of 2 >= 1024, got True"),
    ("ring_task_window", 6, "ring_task_window must be a power of 2 >= 4, got 6"),
    ("ring_heap", 512, "ring_heap must be a power of 2 >= 1024, got 512"),
    ("ring_heap", 2048.0, "ring_heap must be a power of 2 >= 1024, got 2048.0"),
    ("ring_dep_pool", 2**31, r"ring_dep_pool must be in \[4, 2147483647\], got 2147483648"),
    ("ring_dep_pool", [8, 8], "ring_dep_pool must have exactly 4 entries, one for each depth, got 2"),
    ("ring_dep_pool", [8, False, 8, 8], r"each of ring_dep_pool must be in \[4, 2147483647\], got False"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: object, message: str) -> None:
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=message):
        RunConfig(**arguments)


def test_rings_are_sized_together_or_one_by_one() -> None:
    assert RunConfig(ring_heap=4096).ring_heap == 4096
    assert RunConfig(ring_heap=[1024, 0, 2048, 0]).ring_heap == (1024, 0, 2048, 0)


@pytest.mark.parametrize("name", ["chip_swimlane", "dump_args", "pmu", "dep_gen", "scope_stats"])
def test_diagnostics_keep_the_kernels(name: str) -> None:
    flags: dict[str, Any] = {f"enable_{name}": True}
    config = RunConfig(**flags)
    assert config.any_dfx_enabled() and config.save_kernels
    assert not RunConfig().any_dfx_enabled()


def test_the_old_name_of_a_field_says_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="now called enable_chip_swimlane"):
        config = RunConfig(enable_l2_swimlane=2)
    assert config == RunConfig(enable_chip_swimlane=2)
    assert dataclasses.replace(config, device_id=1).enable_chip_swimlane == 2


def test_both_names_of_a_field_are_one_too_many() -> None:
    with pytest.raises(ValueError, match="are one field: give the former alone"):
        RunConfig(enable_l2_swimlane=2, enable_chip_swimlane=1)


def test_a_whole_swimlane_is_its_highest_level() -> None:
    assert RunConfig(enable_chip_swimlane=True).enable_chip_swimlane == 4
    assert RunConfig(enable_dump_args=True).enable_dump_args == 1


def test_fields_are_assigned_and_looked_at_when_they_are_used() -> None:
    config = RunConfig("a2a3sim")
    config.rtol, config.platform = 1e-3, "interpret"
    kernel, x = pl.jit(double), np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(kernel(x, config=config), 2 * x)
    assert (config.rtol, kernel.compile(x, config=config).platform) == (1e-3, "interpret")
    config.enable_pmu = 1
    assert config.any_dfx_enabled() and not config.save_kernels
    assert dataclasses.replace(config).save_kernels


def test_what_ir_compile_takes_is_handed_to_it() -> None:
    config = RunConfig("a5", dump_passes=PassDumpLevel.CONCISE, save_kernels_dir="here")
    assert config.compile_kwargs() == {
        "platform": "a5",
        "strategy": OptimizationStrategy.Default,
        "dump_passes": PassDumpLevel.CONCISE,
        "backend_type": BackendType.Ascend950,
        "profiling": False,
        "output_dir": "here",
    }


def double(x: pl.Tensor, out: pl.Out[pl.Tensor]) -> Any:
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) * 2.0, [0, 0], out)
    return out


def test_fields_that_do_not_change_code_share_a_program() -> None:
    kernel, x = pl.jit(double), np.ones((4, 8), np.float32)
    for config in (None, RunConfig(), RunConfig("a5"), RunConfig(device_id=3, rtol=1e-2, enable_pmu=2)):
        np.testing.assert_array_equal(kernel(x, config=config), 2 * x)
    assert kernel.cache_info().compiles == 1
    kernel(x, config=RunConfig("interpret"))
    assert kernel.cache_info().compiles == 2


def shared(x: pl.Tensor, out: pl.InOut[pl.Tensor]) -> Any:
    for i in pl.parallel(4):
        pl.write(out, [i // 2, 0], pl.read(x, [i, 0]))
    return out


def test_a_checked_run_reports_turns_that_race_whatever_the_platform() -> None:
    kernel, x = pl.jit(shared), np.ones((4, 8), np.float32)
    for platform in platforms():
        with pytest.raises(RaceError, match=r"turn i = 1 writes out\[0, 0\], which turn i = 0 writes"):
            kernel(x, np.zeros((4, 8), np.float32), config=RunConfig(platform, checked=True))
    assert kernel.cache_info().compiles == 1
    kernel(x, np.zeros((4, 8), np.float32), config=RunConfig("interpret"))
    assert kernel.cache_info().compiles == 2


def test_a_checked_run_gives_what_others_give() -> None:
    kernel, x = pl.jit(double), np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(kernel(x, config=RunConfig(checked=True)), 2 * x)
    with pytest.raises(ValueError, match="checked must be True or False, got 'races'"):
        RunConfig(checked="races")  # pyright: ignore[reportArgumentType]


def test_passes_are_dumped_where_the_configuration_says(tmp_path: Path) -> None:
    kernel, x = pl.jit(double), np.ones((4, 8), np.float32)
    kernel(x, config=RunConfig(dump_passes=True, save_kernels_dir=tmp_path))
    assert (tmp_path / "passes_dump" / "00_frontend.py").exists()


def test_a_configuration_is_made_without_the_compiler() -> None:
    code = "import sys, tilewright.programs.config; print([m for m in sys.modules if 'passes.' in m or 'numpy' in m])"
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert run.stdout.strip() == "['tilewright.passes.choices', 'tilewright.passes.strategy']"


def test_devices_of_ranks_stay_what_they_are_where_another_field_is_replaced() -> None:
    config = dataclasses.replace(RunConfig(device_ids=[0, 1]), platform="interpret")
    assert config.distributed_config is not None and config.distributed_config.device_ids == [0, 1]
    assert config == RunConfig("interpret", device_ids=[0, 1])


def test_devices_are_said_once() -> None:
    with pytest.raises(ValueError, match="device_ids belongs to distributed_config: give one of them"):
        RunConfig(device_ids=[0, 1], distributed_config=DistributedConfig([0, 1]))


def test_device_ids_read_what_was_given() -> None:
    def read(config: Any) -> Any:
        return config.device_ids

    assert read(RunConfig()) is None
    assert read(RunConfig(device_ids=[2, 0])) == [2, 0]
    assert read(RunConfig(device_ids=range(3))) == [0, 1, 2]
    assert read(RunConfig(distributed_config=DistributedConfig([3, 1]))) == [3, 1]
    other = dataclasses.replace(RunConfig(device_ids=[0, 1]), distributed_config=DistributedConfig([5]))
    assert read(other) == [5]
    with pytest.raises(ValueError, match="give one of them"):
        dataclasses.replace(other, device_ids=[1])
    assert "device_ids=_" not in repr(other)
