"""Ranks on devices with memory of their own, where there are none: the processor stands for them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from processes import launched
from unit.programs.host_devices import HostDevices

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright import ir
from tilewright.core.enums import ReduceOp
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import WindowBuffer
from tilewright.native.domains import HEAD, Record
from tilewright.ops.collectives import MEANINGS
from tilewright.programs.distributed import device_team
from tilewright.programs.distributed.device_collectives import meaning
from tilewright.programs.distributed.device_windows import ALIGNED, Layout
from tilewright.programs.distributed.ranked import Ranked
from tilewright.runtime import DistributedConfig, RunConfig

SIZE, NR = 32, pl.dynamic("NR")
Row = pl.Tensor[[1, SIZE], pl.FP32]
Rows = pl.Tensor[[NR, 1, SIZE], pl.FP32]
Inbox = pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]]
Signal = pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]


@pl.jit
def pass_on(x: Row, y: pl.Out[Row], inbox: Inbox, signal: Signal, expected: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        following = (pld.rank(inbox) + 1) % pld.nranks(inbox)
        pld.tensor.put(inbox, peer=following, src=x)
        pld.system.notify(signal, peer=following, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, offsets=[0, 0], expected=expected, cmp=pld.WaitCmp.Eq)
        y = pl.store(pl.load(inbox, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.host
def ring(x: Rows, y: pl.Out[Rows], expected: pl.Scalar[pl.INT32]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signals = pld.alloc_window_buffer(pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        inbox = pld.window(rows, [1, SIZE], dtype=pl.FP32)
        pass_on(x[r], y[r], inbox, pld.window(signals, [1, 1], dtype=pl.INT32), expected, device=r)
    return y


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> HostDevices:
    made = HostDevices()
    monkeypatch.setattr(Ranked, "devices", made)
    ring.cache_clear()  # or plans of another test would go on with its devices
    return made


def compiled(host: Any, *args: Any, ranks: int = 4) -> Any:
    config = DistributedConfig(range(ranks), timeout_s=20.0)
    return host.compile(*args, config=RunConfig(distributed_config=config))


def test_windows_are_zero_when_a_run_begins_and_what_the_caller_started_is_done(devices: HostDevices) -> None:
    x: Any = np.random.default_rng(1).random((4, 1, SIZE), np.float32)
    program = compiled(ring, x, x.copy(), 1)
    for run in range(1, 4):
        y: Any = np.zeros_like(x)
        program(x, y, 1)
        np.testing.assert_array_equal(y, np.roll(x, 1, 0))
        assert devices.callers == [0] * run


def test_ranks_that_all_wait_are_told_so_and_the_next_run_works(devices: HostDevices) -> None:
    x: Any = np.ones((2, 1, SIZE), np.float32)
    vain, program = (compiled(ring, x, x.copy(), expected, ranks=2) for expected in (7, 1))
    for _ in range(2):
        with pytest.raises(ExecutionError, match="all ranks that are left wait") as caught:
            vain(x, x.copy(), 7)
        assert "cell [0, 0] is 1, and it waits for == 7" in str(caught.value)
    y: Any = np.zeros_like(x)
    program(x, y, 1)
    np.testing.assert_array_equal(y, x)


def test_kernels_that_do_not_end_are_named(devices: HostDevices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_team, "PATIENCE", 0.1)
    x: Any = np.ones((3, 1, SIZE), np.float32)
    program = compiled(ring, x, x.copy(), 1, ranks=3)
    devices.is_busy = True
    monkeypatch.setattr(device_team.Stand, "begin", device_team.Stand.stop)
    with pytest.raises(ExecutionError, match=r"kernels of rank \d do not end"):
        program(x, x.copy(), 1)


@pl.jit.host
def looking(x: Rows, y: pl.Out[Rows]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signals = pld.alloc_window_buffer(pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        if pl.read(x, [r, 0, 0]) > 0.0:
            inbox = pld.window(rows, [1, SIZE], dtype=pl.FP32)
            pass_on(x[r], y[r], inbox, pld.window(signals, [1, 1], dtype=pl.INT32), 1, device=r)
    return y


def test_a_host_function_that_looks_at_elements_is_refused_on_devices(devices: HostDevices) -> None:
    x: Any = np.ones((2, 1, SIZE), np.float32)
    with pytest.raises(ExecutionError, match="looks at elements of its arguments, which are on a GPU"):
        compiled(looking, x, x.copy(), ranks=2)(x, x.copy())


WORKING = """
import tilewright.language as pl
import tilewright.language.distributed as pld

@pl.program
class Working:
    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: pl.Tensor[[8], pl.FP32], y: pl.Out[pl.Tensor[[8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0], [8]), [0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def halve(y: pl.InOut[pl.Tensor[[2, 8], pl.FP32]]):
        y.mul_(0.5)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[2, 8], pl.FP32], y: pl.Out[pl.Tensor[[2, 8], pl.FP32]]):
        for r in pl.range(pld.world_size()):
            self.chip(x[r], y[r], device=r)
        self.halve(y)
"""


def test_a_function_of_the_hosts_is_refused_on_devices(devices: HostDevices) -> None:
    program: Any = ir.compile(pl.parse(WORKING), platform="cpu", distributed_config=DistributedConfig([0, 1]))
    x: Any = np.ones((2, 8), np.float32)
    with pytest.raises(ExecutionError, match="`halve` runs on the host, which has no tensors of a GPU"):
        program(x, x.copy())


@pytest.mark.parametrize("name", ["allreduce", "reduce_scatter", "allgather", "broadcast", "all_to_all", "barrier"])
def test_a_collective_of_tensors_gives_the_bits_of_arrays(name: str) -> None:
    rng, ranks = np.random.default_rng(1), 3
    options: dict[str, Any] = {"op": ReduceOp.Sum} if "reduce" in name else {"root": 2} if name == "broadcast" else {}
    names = {"allgather": ("local_data", "target"), "all_to_all": ("input", "target")}.get(name, ("target",))
    arrays: Any = [{each: rng.standard_normal((ranks, 5)).astype(np.float32) for each in names} for _ in range(ranks)]
    tensors: Any = [{each: torch.tensor(array) for each, array in part.items()} for part in arrays]
    MEANINGS[name](arrays, **options)
    meaning(name)(tensors, **options)
    for part, other in zip(arrays, tensors, strict=True):
        for each, array in part.items():
            np.testing.assert_array_equal(other[each].numpy(), array)


def test_parts_lie_apart_each_behind_its_record() -> None:
    buffers = [WindowBuffer(100, {0, 1, 2}), WindowBuffer(0, {1}), WindowBuffer(4096, {0, 1, 2})]
    layout = Layout.of(buffers, 1)
    ends = 0
    for buffer in buffers:
        start = layout.offsets[buffer]
        assert start % ALIGNED == 0 and start - HEAD - 8 * (Record.PARTS + len(buffer.domain)) >= ends
        ends = start + buffer.size
    assert ends <= layout.size and list(Layout.of(buffers, 0).offsets) == [buffers[0], buffers[2]]


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="memory is shared where Linux does")
@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_map_each_others_devices_end_together_and_go_on_after_faults(tmp_path: Path, ranks: int) -> None:
    told = [said.splitlines() for said in launched(ranks, tmp_path, WORKER, "memory", "cpu")]
    check_told(told)
    for rank, lines in enumerate(told):
        far = "the GPU of rank 1 does not reach the memory of rank 0"
        assert f"{'' if rank == 1 else 'rank 1 failed: '}{far}" in lines[0], lines


def check_told(told: Sequence[Sequence[str]]) -> None:
    """Check what processes say that work, fail and work again."""
    last = len(told) - 1
    for rank, lines in enumerate(told):
        for name, times in (("works", 1), ("again", 1), ("once more", 1), ("recovers", 2)):
            assert [line for line in lines if line.startswith(name)] == [f"{name}: right [in time]"] * times, lines
        found = {line.partition(":")[0]: line for line in lines}
        failed = "on rank" if rank == last else f"rank {last} failed: x must not be negative"
        assert "x must not be negative" in found["raises"] and failed in found["raises"], lines
        assert "nobody can end that" in found["hangs"] or "this wait was ended" in found["hangs"], lines
        assert rank == last or f"the process of rank {last} has ended" in found["dies"], lines
        assert all(line.endswith("[in time]") for line in found.values() if line.split(":")[0] in FAULTS), lines


FAULTS = "raises", "hangs", "dies"
WORKER = Path(__file__).with_name("devices_worker.py")
