"""Distributed workers: runs again and again, memory that stays, sub-workers, and programs from folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright import ir
from tilewright.errors import ExecutionError
from tilewright.runtime import (
    DistributedCompiledProgram,
    DistributedConfig,
    DistributedRunHandle,
    DistributedWorker,
    RunConfig,
    StackedDeviceTensor,
    execute_distributed_compiled,
)

HEAD = """
import tilewright.language.distributed as pld
X = pl.Tensor[[1, 8], pl.FP32]
XS = pl.Tensor[[2, 1, 8], pl.FP32]
W = pld.DistributedTensor[[1, 8], pl.FP32]
"""
ADDING = """
@pl.program
class Adding:
    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: X, y: pl.Out[X], w: pl.InOut[W]):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.add(pl.load(w, [0, 0], [1, 8]), pl.load(x, [0, 0], [1, 8]))
            pl.store(total, [0, 0], w)
            pl.store(total, [0, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def halve(y: pl.InOut[XS]):
        y.mul_(0.5)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def look(y: XS): ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: XS, y: pl.Out[XS]):
        rows = pld.alloc_window_buffer(32)
        for r in pl.range(pld.world_size()):
            self.chip(x[r], y[r], pld.window(rows, [1, 8], dtype=pl.FP32), device=r)
        self.halve(y)
        self.look(y)
"""
"""Every rank adds its row to its window, and gives what that holds; the host then halves all of it."""

COPYING = """
@pl.program
class Copying:
    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: X, y: pl.Out[X]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: XS, y: pl.Out[XS]):
        for r in pl.range(pld.world_size()):
            self.chip(x[r], y[r], device=r)
"""
PROGRAM = pl.parse(HEAD + ADDING)


def compiled(platform: str = "cpu") -> DistributedCompiledProgram:
    made = ir.compile(PROGRAM, platform=platform, distributed_config=DistributedConfig([0, 1]))
    assert isinstance(made, DistributedCompiledProgram)
    return made


def ignore(args: list[Any]) -> None:
    """Look at nothing."""


def shared(value: float) -> torch.Tensor:
    made: Any = torch.full((2, 1, 8), value)
    return made.share_memory_()


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_worker_runs_in_place_with_functions_of_pythons_in_their_turn(platform: str) -> None:
    seen: list[Any] = []

    def look(args: list[Any]) -> None:
        seen.append(args[0].clone())

    x, y = shared(4.0), shared(0.0)
    with compiled(platform).prepare(callbacks={"look": look}) as worker:
        worker(x, y)
        assert torch.equal(y, torch.full_like(y, 2.0)) and torch.equal(seen[0], y)
        worker(x, y)
        assert torch.equal(y, torch.full_like(y, 2.0))
    with pytest.raises(RuntimeError, match="closed"):
        worker(x, y)
    worker.close()


def test_persistent_windows_keep_what_they_hold_unless_they_are_reset() -> None:
    x, y, program = shared(4.0), shared(0.0), compiled()
    options: dict[str, Any] = {"callbacks": {"look": ignore}}
    with program.prepare(persistent=True, reset_persistent_windows=False, **options) as worker:
        handles = [worker.submit(program, x, y) for _ in range(3)]
        assert all(isinstance(handle, DistributedRunHandle) for handle in handles)
        handles[-1].result()
        assert all(handle.done for handle in handles) and torch.equal(y, torch.full_like(y, 6.0))
        with pytest.raises(ValueError, match="timeout"):
            handles[0].result(-1)
    with program.prepare(persistent=True, **options) as worker:
        for _ in range(2):
            worker.run(program, x, y)
        assert torch.equal(y, torch.full_like(y, 2.0))


@pl.jit
def counts(y: pl.Out[pl.Tensor[[1, 8], pl.FP32]], window: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(window, [0, 0], [1, 8]) + 1.0, [0, 0], window)
        pl.store(pl.load(window, [0, 0], [1, 8]), [0, 0], y)


@pl.jit.host
def counted(y: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]):
    held = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        counts(y[r], pld.window(held, [1, 8], dtype=pl.FP32), device=r)
    return y


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize(("resets", "expected"), [(False, [1, 2, 3]), (True, [1, 1, 1])])
def test_windows_are_kept_on_every_platform(platform: str, resets: bool, expected: list[int]) -> None:
    y, seen = shared(0.0), list[int]()
    program: Any = counted.compile(y, config=RunConfig(platform=platform, device_ids=[0, 1]))
    with program.prepare(persistent=True, reset_persistent_windows=resets) as worker:
        for _ in range(3):
            worker(y)
            seen.append(int(y[1, 0, 3]))
    assert seen == expected


def test_a_worker_refuses_what_it_cannot_take() -> None:
    program, other = compiled(), compiled()
    with pytest.raises(ValueError, match="'look' has no body"):
        program.prepare()
    with pytest.raises(ValueError, match="no sub-worker is called 'nobody'"):
        program.prepare(callbacks={"nobody": print})
    told: dict[str, Any] = {"callbacks": {"look": ignore}}
    with pytest.raises(ValueError, match="startup_timeout_s"):
        program.prepare(startup_timeout_s=0.0, **told)
    with pytest.raises(ValueError, match="reset_persistent_windows"):
        program.prepare(reset_persistent_windows=True, **told)
    with program.prepare(extra_compiled=[other], **told) as worker:
        with pytest.raises(TypeError, match="ambiguous"):
            worker(shared(0.0), shared(0.0))
        with pytest.raises(ValueError, match="was not given to this worker"):
            worker.register(compiled())
        with pytest.raises(TypeError, match="share_memory_"):
            worker.run(program, torch.zeros(2, 1, 8), shared(0.0))
        with pytest.raises(TypeError, match="every parameter"):
            worker.run(program, shared(0.0))
        worker.register(other)(shared(0.0), shared(0.0))


def test_tensors_of_ranks_stay_where_they_are() -> None:
    program = compiled()
    with DistributedWorker(program, callbacks={"look": ignore}) as worker:
        x = worker.alloc_stacked_tensor(torch.full((2, 1, 8), 6.0))
        y = worker.alloc_tensor((2, 1, 8), torch.float32, worker_id=1)
        worker(x, y)
        host = torch.zeros(2, 1, 8)
        worker.copy_stacked_from(StackedDeviceTensor(y, [0, 1]), host)
        assert torch.equal(host, torch.full_like(host, 3.0)) and worker.committed_device_memory(1) == 64
        assert x[1].data_ptr == x.shards[1].data_ptr and x[0, ...].shape == (1, 8)
        for wrong, error in ((slice(0, 1), TypeError), (2, IndexError), ((0, 0), ValueError)):
            with pytest.raises(error):
                x[wrong]
        with pytest.raises(TypeError, match="tensors of the host"):
            program(y, torch.zeros(2, 1, 8))
        with pytest.raises(ValueError, match="as many ranks"):
            worker.alloc_stacked_tensor(torch.zeros(2, 1, 8), worker_ids=[1, 1])
        worker.free_stacked_tensor(x)


def test_a_folder_holds_a_program_that_runs_again(tmp_path: Path) -> None:
    config = DistributedConfig([0, 1])
    made = ir.compile(pl.parse(HEAD + COPYING), str(tmp_path / "out"), distributed_config=config)
    x, y = torch.randn(2, 1, 8), torch.zeros(2, 1, 8)
    execute_distributed_compiled(made.output_dir, [x, y])
    assert torch.equal(x, y)
    with pytest.raises(FileNotFoundError):
        DistributedCompiledProgram.from_dir(tmp_path / "nowhere")
    (tmp_path / "out" / "distributed_meta.json").write_text("{}")
    with pytest.raises(ValueError, match="broken"):
        DistributedCompiledProgram.from_dir(tmp_path / "out")


def test_a_program_refuses_other_ranks_than_it_was_compiled_for_and_a_worker_tensors_for_programs() -> None:
    program = ir.compile(pl.parse(HEAD + COPYING), distributed_config=DistributedConfig([0, 1]))
    assert isinstance(program, DistributedCompiledProgram)
    x, y = shared(3.0), shared(0.0)
    program(x, y, config=RunConfig(device_ids=[0, 1]))
    alone, interpreted = RunConfig(device_ids=[0]), RunConfig(platform="interpret")
    for config, words in ((alone, "device_ids"), (interpreted, "platform 'interpret'")):
        with pytest.raises(ValueError, match=f"config names {words}.* was compiled for"):
            program(x, y, config=config)
    with pytest.raises(TypeError, match="config is a RunConfig, got 17"):
        program(x, y, config=17)
    with program.prepare() as worker, pytest.raises(TypeError, match=r"submit\(program, \*tensors\), got Tensor"):
        worker.submit(x, y)  # pyright: ignore[reportArgumentType]


def test_a_function_of_pythons_that_calls_a_host_function_is_told_so() -> None:
    program, x, y = compiled(), shared(4.0), shared(0.0)
    other = ir.compile(pl.parse(HEAD + COPYING), distributed_config=DistributedConfig([0, 1]))

    def look(args: list[Any]) -> None:
        other(x, torch.zeros_like(y))

    with (
        program.prepare(callbacks={"look": look}) as worker,
        pytest.raises(ExecutionError, match="a function that a rank runs has called a host function"),
    ):
        worker(x, y)
