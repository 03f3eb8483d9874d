"""Many ranks on GPUs: the examples as they are, on tensors of the device, all ranks in one process."""

from __future__ import annotations

import runpy
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from processes import launched
from unit.programs.test_device_ranks import WORKER, check_told

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ExecutionError, UnsupportedFeatureError
from tilewright.runtime import DistributedConfig, RunConfig

FOLDER = Path(__file__).parents[2] / "examples" / "distributed"
WAYS: list[tuple[str, dict[str, str]]] = [
    ("ring_put", {}),
    ("barrier", {}),
    *(("all_reduce", {"way": way}) for way in ("ring", "two_shot", "in_kernel", "around", "on_host")),
    *(("all_gather_matmul", {"way": way}) for way in ("by_hand", "on_host")),
    ("matmul_reduce_scatter", {}),
    ("tensor_parallel_mlp", {}),
    ("moe_dispatch", {}),
    ("ring_attention", {}),
]
NR, SIZE = pl.dynamic("NR"), 64
Rows = pl.Tensor[[NR, NR, SIZE], pl.FP32]
Own = pl.Tensor[[NR, SIZE], pl.FP32]
Window = pld.DistributedTensor[[NR, SIZE], pl.FP32]


@pytest.mark.parametrize(("name", "options"), WAYS, ids=["-".join((name, *way.values())) for name, way in WAYS])
@pytest.mark.parametrize("ranks", [2, 4])
def test_an_example_on_ranks_of_a_gpu_agrees_with_torch(name: str, options: dict[str, Any], ranks: int) -> None:
    run = runpy.run_path(str(FOLDER / f"{name}.py"))["run"]
    with torch.device("cuda"):
        for _ in range(3):  # windows are zero again, and signals
            found, wanted = run(ranks, platform="cuda", **options)
            assert found.is_cuda
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@pl.jit
def publish(x: Own, data: pl.InOut[Window]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(x.shape[0]):
            pl.store(pl.load(x, [row, 0], [1, SIZE]), [row, 0], data)


@pl.jit
def consume(data: Window, y: pl.Out[Own]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(y.shape[0]):
            y = pl.store(pl.load(data, [row, 0], [1, SIZE]), [row, 0], y)
    return y


@pl.jit.host
def reduced(x: Rows, y: pl.Out[Rows]):
    n = pld.world_size()
    rows = pld.alloc_window_buffer(n * SIZE * pl.FP32.get_byte())
    cells = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    data = pld.window(rows, [n, SIZE], dtype=pl.FP32)
    for r in pl.range(n):
        publish(x[r], data, device=r)
    data = pld.tensor.reduce_scatter(data, pld.window(cells, [n], dtype=pl.INT32))
    data = pld.tensor.broadcast(data, pld.window(cells, [n], dtype=pl.INT32), root=1)
    for r in pl.range(n):
        consume(data, y[r], device=r)
    return y


@pl.jit.host
def exchanged(x: Rows, y: pl.Out[Rows]):
    n = pld.world_size()
    rows = pld.alloc_window_buffer(n * SIZE * pl.FP32.get_byte())
    others = pld.alloc_window_buffer(n * SIZE * pl.FP32.get_byte())
    cells = pld.alloc_window_buffer(n * pl.INT32.get_byte())
    data, into = pld.window(rows, [n, SIZE], dtype=pl.FP32), pld.window(others, [n, SIZE], dtype=pl.FP32)
    for r in pl.range(n):
        publish(x[r], data, device=r)
    into = pld.tensor.all_to_all(data, into, pld.window(cells, [n], dtype=pl.INT32))
    pld.tensor.barrier(pld.window(cells, [n], dtype=pl.INT32))
    for r in pl.range(n):
        consume(into, y[r], device=r)
    return y


@pytest.mark.parametrize("host", [reduced, exchanged], ids=["reduced", "exchanged"])
def test_collectives_of_the_host_give_the_bits_of_the_processor(host: Any) -> None:
    x = torch.randn(4, 4, SIZE)
    wanted, found = torch.zeros_like(x), torch.zeros_like(x).cuda()
    host(x, wanted, config=RunConfig(device_ids=range(4)))
    host(x.cuda(), found, config=RunConfig(device_ids=range(4)))
    np.testing.assert_array_equal(found.cpu().numpy(), wanted.numpy())


@pl.jit
def told(x: pl.Tensor[[1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
         inbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
         signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]):  # fmt: skip
    me = pld.rank(pld.get_comm_ctx(inbox))
    following = (me + 1) % pld.nranks(pld.get_comm_ctx(inbox))
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.put(inbox, peer=following, src=x)
    pld.system.notify(signal, peer=following, offsets=[0, 0], value=3, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, offsets=[0, 0], expected=3, cmp=pld.WaitCmp.Eq)
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(inbox, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.host
def ring(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signals = pld.alloc_window_buffer(pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        inbox = pld.window(rows, [1, SIZE], dtype=pl.FP32)
        told(x[r], y[r], inbox, pld.window(signals, [1, 1], dtype=pl.INT32), device=r)
    return y


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_signals_between_launches(ranks: int) -> None:
    x = torch.randn(ranks, 1, SIZE, device="cuda")
    y = torch.zeros_like(x)
    ring(x, y, config=RunConfig(device_ids=range(ranks)))
    torch.testing.assert_close(y, x.roll(1, 0))


@pl.jit
def lonely(y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]], signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(signal, offsets=[0, 0], expected=7, cmp=pld.WaitCmp.Ge)
        y = pl.store(pl.tile.full([1, SIZE], dtype=pl.FP32, value=1.0), [0, 0], y)
    return y


@pl.jit.host
def waiting(y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    signals = pld.alloc_window_buffer(pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        lonely(y[r], pld.window(signals, [1, 1], dtype=pl.INT32), device=r)
    return y


def test_ranks_that_all_wait_are_told_so_and_the_next_call_works() -> None:
    y, began = torch.zeros(2, 1, SIZE, device="cuda"), time.monotonic()
    for _ in range(2):
        config = DistributedConfig(device_ids=range(2), timeout_s=20.0)
        with pytest.raises(ExecutionError) as caught:
            waiting(y, config=RunConfig(distributed_config=config))
        assert "all ranks that are left wait" in str(caught.value)
        assert "its cell is 0, and it waits for >= 7" in str(caught.value)
    assert time.monotonic() - began < 60.0
    test_signals_between_launches(2)


@pl.jit
def astray(x: pl.Tensor[[1, SIZE], pl.FP32], inbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
           signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]], peer: pl.Scalar[pl.INT32]):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.put(inbox, peer=peer, src=x)
        pld.system.notify(signal, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
        pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)


@pl.jit.host
def straying(x: pl.Tensor[[NR, 1, SIZE], pl.FP32]):
    rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signals = pld.alloc_window_buffer(pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        inbox = pld.window(rows, [1, SIZE], dtype=pl.FP32)
        astray(x[r], inbox, pld.window(signals, [1, 1], dtype=pl.INT32), r + 1, device=r)


def test_a_peer_that_is_none_is_named() -> None:
    config = DistributedConfig(device_ids=range(2), timeout_s=20.0)
    with pytest.raises(ExecutionError, match="no rank of the domain"):
        straying(torch.ones(2, 1, SIZE, device="cuda"), config=RunConfig(distributed_config=config))


@pytest.mark.parametrize("ranks", [2, 4])
def test_processes_on_one_gpu_map_each_others_windows(tmp_path: Path, ranks: int) -> None:
    told = [said.splitlines() for said in launched(ranks, tmp_path, WORKER, "memory", "cuda")]
    check_told(told)
    for lines in told:
        examples = [line for line in lines if line.startswith("example ")]
        assert len(examples) >= 11 and all(line.endswith(": right") for line in examples), lines


def test_ranks_do_not_wait_by_pointers() -> None:
    run = runpy.run_path(str(FOLDER / "hand_written_ring.py"))["run"]
    with torch.device("cuda"), pytest.raises(UnsupportedFeatureError, match="and this one is behind a pointer"):
        run(2, platform="cuda")
