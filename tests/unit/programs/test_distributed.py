"""Programs of many ranks, natively: their configuration, faults, domains, and calls again."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from processes import LATE
from unit.programs import hazards_worker

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ExecutionError
from tilewright.interpret.rows import IdleRankWarning
from tilewright.ir.distributed_compiled_program import DistributedCompiledProgram, DistributedConfig
from tilewright.programs.distributed.segments import Segment
from tilewright.programs.distributed.waits import Waits
from tilewright.runtime import RunConfig

S = pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]
Cells = pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"device_ids": []},
        {"device_ids": [0, -1]},
        {"device_ids": [1, 1]},
        {"num_sub_workers": -1},
        {"aicpu_thread_num": 1},
        {"timeout_s": 0.0},
    ],
)
def test_a_configuration_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DistributedConfig(**wrong)


def test_devices_are_named_one_by_one() -> None:
    with pytest.raises(TypeError, match=r"device_ids names devices one by one, got 2: a list or range\(2\)"):
        RunConfig(device_ids=2)  # pyright: ignore[reportArgumentType]


@pl.jit
def meets(x: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT32]], signal: S):
    """Tell rank 0 of the domain, which waits for as many as `x` says; fail where `x` is negative."""
    with pl.at(level=pl.Level.CORE_GROUP):
        wanted = pl.read(x, [0])
        pl.system.device_assert(wanted >= 0, message="x must not be negative")
        pld.system.notify(signal, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        if pld.rank(signal) < 1:
            pld.system.wait(signal, [0, 0], wanted, cmp=pld.WaitCmp.Eq)
        pl.write(y, [0], pld.rank(signal) * 10 + pld.nranks(signal))
    return y


@pl.jit.host
def meeting(x: pl.Tensor[[4, 1], pl.INT32], y: pl.Out[pl.Tensor[[4, 1], pl.INT32]], first: pl.Scalar[pl.INT32]):
    cells = pld.alloc_window_buffer(4)
    for r in pl.range(first, pld.world_size()):
        meets(x[r], y[r], pld.window(cells, [1, 1], dtype=pl.INT32), device=r)
    return y


def config(platform: str = "cpu", timeout: float = 3 * LATE) -> RunConfig:
    return RunConfig(platform=platform, distributed_config=DistributedConfig([0, 1, 2, 3], timeout_s=timeout))


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_ranks_count_within_the_domain_that_windows_are_dispatched_to(platform: str) -> None:
    y = np.full((4, 1), -1, np.int32)
    with pytest.warns(IdleRankWarning, match="rank 0 is dispatched nothing"):
        meeting(np.full((4, 1), 3, np.int32), y, 1, config=config(platform))
    assert y.ravel().tolist() == [-1, 3, 13, 23]


def test_a_rank_that_fails_ends_the_others_and_is_named_and_the_next_call_works() -> None:
    x, y = np.full((4, 1), 4, np.int32), np.zeros((4, 1), np.int32)
    x[2] = -1
    since = time.monotonic()
    with pytest.raises(ExecutionError) as caught:
        meeting(x, y, 0, config=config())
    assert time.monotonic() - since < LATE
    assert "x must not be negative" in str(caught.value) and "on rank 2" in str(caught.value)
    assert re.search("rank 0: this wait was ended: cell .0, 0. is [0-3], and it waits for == 4", str(caught.value))
    x[2] = 4
    meeting(x, y, 0, config=config())
    assert y.ravel().tolist() == [4, 14, 24, 34]


def test_ranks_that_all_wait_are_told_so_at_once_at_the_line_that_waits() -> None:
    since = time.monotonic()
    with pytest.raises(ExecutionError) as caught:
        meeting(np.full((4, 1), 9, np.int32), np.zeros((4, 1), np.int32), 0, config=config())
    assert time.monotonic() - since < LATE
    assert "all ranks that are left wait, and nobody can end that" in str(caught.value)
    assert "rank 0: this wait was ended: cell [0, 0] is 4, and it waits for == 9" in str(caught.value)
    assert "pld.system.wait(signal, [0, 0], wanted" in str(caught.value) and "help: every wait needs" in str(
        caught.value
    )


def never(_: Waits, left: int, turns: tuple[int, ...]) -> bool:
    return False


def test_ranks_that_wait_in_vain_are_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Waits, "are_in_vain", never)
    with pytest.raises(ExecutionError) as caught:
        meeting(np.full((4, 1), 9, np.int32), np.zeros((4, 1), np.int32), 0, config=config(timeout=3.0))
    assert "waited for each other for more than 3 s" in str(caught.value)
    assert "cell [0, 0] is 4, and it waits for == 9" in str(caught.value)


@pl.jit
def sines(x: pl.Tensor[[1, 8], pl.FP32], times: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.load(x, [0, 0], [1, 8])
        for _ in pl.range(times):
            acc = pl.sin(acc)
        y = pl.store(acc, [0, 0], y)
    return y


@pl.jit.host
def computing(x: pl.Tensor[[4, 1, 8], pl.FP32], times: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[4, 1, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        sines(x[r], times, y[r], device=r)
    return y


def test_ranks_that_compute_for_long_are_not_said_to_wait() -> None:
    x, y, times, took = np.ones((4, 1, 8), np.float32), np.zeros((4, 1, 8), np.float32), 1 << 12, 0.0
    while took < 0.3:
        times, since = 2 * times, time.monotonic()
        computing(x, times, y, config=config(timeout=0.1))
        took = time.monotonic() - since
    assert y.all()


def test_a_signal_ends_what_ranks_compute_and_the_next_call_works() -> None:
    x, y = np.ones((4, 1, 8), np.float32), np.zeros((4, 1, 8), np.float32)
    computing(x, 1, y, config=config())
    threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
    since = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        computing(x, 1 << 30, y, config=config())
    computing(x, 1, y, config=config())
    assert time.monotonic() - since < LATE


def test_a_host_function_compiles_to_a_program_that_finds_its_plan_again() -> None:
    compiled = meeting.compile(config=config(), first=pl.RUNTIME)
    assert isinstance(compiled, DistributedCompiledProgram)
    for count in (4, 4):
        x, y = np.full((4, 1), count, np.int32), np.zeros((4, 1), np.int32)
        compiled(x, y, 0)
        assert y.ravel().tolist() == [4, 14, 24, 34]
    assert len(compiled.loaded.plans) == 1


@pl.jit.host
def written_in_place(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.add(pl.load(x, [0, 0], [16, 32]), 1.0), [0, 0], y)
    return y


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_chip_may_be_written_inside_the_host_function(platform: str) -> None:
    x = np.ones((16, 32), np.float32)
    assert np.array_equal(written_in_place(x, config=RunConfig(platform=platform)), x + 1)


@pl.jit
def deferring(x: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT32]], inbox: S, signal: S):
    """Wait for the other rank in a task of its own, which stands before what tells the other rank to go on."""
    with pl.at(level=pl.Level.CORE_GROUP) as arrived:
        pld.system.defer_wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    with pl.at(level=pl.Level.CORE_GROUP):
        other = 1 - pld.rank(inbox)
        pld.system.notify(inbox, other, [0, 0], pl.read(x, [0]), op=pld.NotifyOp.Set)
        pld.system.notify(signal, other, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[arrived]):
        pl.write(y, [0], pl.read(inbox, [0, 0]))
    return y


@pl.jit.host
def deferred(x: pl.Tensor[[2, 1], pl.INT32], y: pl.Out[pl.Tensor[[2, 1], pl.INT32]]):
    rows = pld.alloc_window_buffer(4)
    cells = pld.alloc_window_buffer(4)
    for r in pl.range(pld.world_size()):
        inbox = pld.window(rows, [1, 1], dtype=pl.INT32)
        deferring(x[r], y[r], inbox, pld.window(cells, [1, 1], dtype=pl.INT32), device=r)
    return y


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_deferred_wait_stands_before_what_depends_on_it(platform: str) -> None:
    x = np.array([[5], [7]], np.int32)
    y = deferred(x, config=RunConfig(platform=platform, device_ids=[0, 1]))
    assert y.ravel().tolist() == [7, 5]


@pl.jit
def counts_down(x: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.system.device_assert(pl.read(x, [0]) > 0, message="there is nothing left")
        pl.write(y, [0], pl.read(x, [0]) - 1)
    return y


@pl.jit.host
def handed_around(x: pl.Tensor[[2, 1], pl.INT32], y: pl.InOut[pl.Tensor[[4, 2, 1], pl.INT32]]):
    """Every rank counts down what the other one has left, after two turns of its own."""
    for r in pl.range(pld.world_size()):
        counts_down(x[r], y[0, r], device=r)
        counts_down(y[0, r], y[1, r], device=r)
    for r in pl.range(pld.world_size()):
        counts_down(y[1, 1 - r], y[2, r], device=r)
        counts_down(y[2, r], y[3, r], device=r)
    return y


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_what_a_rank_reads_of_another_is_there_and_a_mistake_is_the_last_turn(platform: str) -> None:
    x, y = np.array([[9], [5]], np.int32), np.zeros((4, 2, 1), np.int32)
    config = RunConfig(platform=platform, device_ids=[0, 1])
    handed_around(x, y, config=config)
    assert y[:, :, 0].tolist() == [[8, 4], [7, 3], [2, 6], [1, 5]]
    y[:] = -7
    with pytest.raises(ExecutionError, match="there is nothing left"):
        handed_around(np.array([[1], [5]], np.int32), y, config=config)
    assert y[:, 0].ravel().tolist()[:2] == [0, -7] and y[2, 1] == -7


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_ranks_touch_a_tensor_in_the_order_of_their_dispatches(
    platform: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hazards_worker.main(platform)
    said = capsys.readouterr().out.splitlines()
    names = "overwritten", "written_twice", "written_by_turns", "added"
    wanted = [f"{name}: right" for name in names for _ in range(2)]
    assert said == [*wanted, "added_at_once: [0.0, 6.0, 0.0]", "own: [2.0, 3.0, 1.0]"]


@pl.jit.host
def gives_its_own(x: pl.Tensor[[2, 1], pl.INT32], y: pl.Out[pl.Tensor[[2, 1], pl.INT32]]):
    made = pl.create_tensor([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        counts_down(x[r], made[r], device=r)
        counts_down(x[r], y[r], device=r)
    return made


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_host_function_returns_what_it_was_given_on_every_platform(platform: str) -> None:
    x, y = np.array([[9], [5]], np.int32), np.zeros((2, 1), np.int32)
    with pytest.raises(ExecutionError, match="returns tensors that it was given") as raised:
        gives_its_own(x, y, config=RunConfig(platform=platform, device_ids=[0, 1]))
    assert "return made" in str(raised.value) and "pl.Out[...]" in raised.value.help


@pl.jit
def scales(x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]], by: pl.Scalar[pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [1, 8]) * by, [0, 0], y)
    return y


@pl.jit.host
def swapped(x: pl.Tensor[[2, 1, 8], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]):
    """Give each rank three times the row of the other one."""
    for r in pl.range(pld.world_size()):
        scales(x[1 - r], y[r], 3.0, device=r)
    return y


@swapped.backward
def swapped_backward(dy: pl.Tensor[[2, 1, 8], pl.FP32], dx: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        scales(dy[1 - r], dx[r], 3.0, device=r)
    return dx


def test_gradients_flow_through_a_host_function_on_the_ranks_of_its_call() -> None:
    x, weights = torch.randn(2, 1, 8, requires_grad=True), torch.randn(2, 1, 8)
    config = RunConfig(device_ids=[0, 1])
    operator: Any = swapped.as_torch_op("tilewright_tests::swapped", config)
    for y in (swapped(x, config=config), swapped.on(config)(x), operator(x)):
        (found,) = torch.autograd.grad((y * weights).sum(), x)
        assert torch.equal(y, x.flip(0) * 3) and torch.equal(found, weights.flip(0) * 3)
    checks = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(operator, (x,), test_utils=checks)  # pyright: ignore[reportUnknownMemberType]
    assert swapped.on(RunConfig(device_ids=[0, 1])) is swapped.on(config)
    with pytest.raises(TypeError, match="only a host function"):
        scales.as_torch_op("tilewright_tests::scales", config)


def around(rows: int, columns: int, **options: Any) -> Any:
    """Return a host function that all-reduces a window with some options, and signals of a shape."""

    @pl.jit.host
    def reduce(x: pl.Tensor[[2, 1, 8], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]):
        held = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
        cells = pld.alloc_window_buffer([rows, columns], dtype=pl.INT32)
        data = pld.window(held, [1, 8], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            scales(x[r], data, 1.0, device=r)
        data = pld.tensor.allreduce(data, pld.window(cells, [rows, columns], dtype=pl.INT32), **options)
        for r in pl.range(pld.world_size()):
            scales(data, y[r], 1.0, device=r)
        return y

    return reduce


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_an_all_reduce_around_a_ring_or_on_cores_needs_its_signals(platform: str) -> None:
    x, config = torch.randn(2, 1, 8), RunConfig(platform=platform, device_ids=[0, 1])
    for host in (around(3, 2, mode="ring"), around(2, 4, core_num=4)):
        assert torch.equal(host(x, config=config), x.sum(0, keepdim=True).expand_as(x))
    wrong = {r"signal of \[3, 2\] on 2 ranks, got \[2, 1\]": around(2, 1, mode="ring")}
    wrong[r"core_num=4 takes a signal of \[2, 4\]"] = around(2, 1, core_num=4)
    wrong["mode 'ring' sums fp32"] = around(3, 2, mode="ring", op=pld.ReduceOp.Max)
    for message, host in wrong.items():
        with pytest.raises(ExecutionError, match=message):
            host(x, config=config)


Counted = pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]]


@pl.jit
def counts(x: pl.Tensor[[1, 8], pl.FP32], total: pl.Out[pl.Tensor[[1, 8], pl.FP32]], sums: Counted, signal: Cells):
    """Add `x` to the part of rank 0, while all others do."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for _ in pl.range(1_000_000):
            pld.tile.remote_store(pl.load(x, [0, 0], [1, 8]), sums, 0, [0, 0], atomic=pl.AtomicType.Add)
        pld.tensor.barrier(signal)
        total = pl.store(pld.tile.remote_load(sums, 0, [0, 0], [1, 8]), [0, 0], total)
    return total


@pl.jit.host
def counting(x: pl.Tensor[[2, 1, 8], pl.FP32], total: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]):
    sums = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
    cells = pld.alloc_window_buffer(8)
    for r in pl.range(pld.world_size()):
        window = pld.window(sums, [1, 8], dtype=pl.FP32)
        counts(x[r], total[r], window, pld.window(cells, [2, 1], dtype=pl.INT32), device=r)
    return total


def test_ranks_that_add_to_one_place_at_the_same_time_lose_nothing() -> None:
    total = torch.zeros(2, 1, 8)
    counting(torch.ones(2, 1, 8), total, config=RunConfig(device_ids=[0, 1]))
    torch.testing.assert_close(total, torch.full_like(total, 2_000_000.0), rtol=0, atol=0)


def test_a_process_group_is_one_of_torch_and_has_this_process() -> None:
    x, y = np.full((4, 1), 4, np.int32), np.zeros((4, 1), np.int32)
    dist: Any = torch.distributed
    for wrong, told in ((5, "a group of torch.distributed, got 5"), (dist.GroupMember.NON_GROUP_MEMBER, "no member")):
        ranks = DistributedConfig([0, 1, 2, 3], process_group=wrong)
        with pytest.raises((TypeError, ValueError), match=told):
            meeting(x, y, 0, config=RunConfig(distributed_config=ranks))


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="memory is shared where Linux does")
def test_memory_that_is_shared_keeps_no_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))
    segments = [Segment.made(64) for _ in range(8)]
    for segment in segments:
        segment.close()
        segment.memory[:] = 7
    assert len(os.listdir("/proc/self/fd")) == before
