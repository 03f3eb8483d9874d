"""Memory of the caller's: what the interpreter says where ranks touch one element of it and nothing orders them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ControlPlaneComputeError, ExecutionError, RaceError
from tilewright.runtime import RunConfig

ROWS = np.array([[8.0 * i + j for j in range(8)] for i in range(4)], np.float32)
Row = pl.Tensor[[1, 8], pl.FP32]
All = pl.Tensor[[4, 8], pl.FP32]


def run(host: Any, *args: np.ndarray, platform: str = "interpret") -> np.ndarray:
    y = np.zeros((4, 8), np.float32)
    host(*args, y, config=RunConfig(platform=platform, device_ids=range(4)))
    return y


@pl.jit
def stores(x: Row, y: pl.InOut[All], row: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(x, [0, 0], [1, 8]), [row, 0], y)
    return y


@pl.jit
def adds(x: Row, y: pl.InOut[All], row: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(x, [0, 0], [1, 8]), [row, 0], y, atomic=pl.AtomicType.Add)
    return y


@pl.jit
def reads(y: All, z: pl.InOut[Row], row: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        z = pl.store(pl.load(y, [row, 0], [1, 8]), [0, 0], z)
    return z


@pl.jit.host
def each_its_own(x: All, y: pl.InOut[All]):
    for r in pl.range(pld.world_size()):
        stores(x[r : r + 1], y, r, device=r)
    return y


@pl.jit.host
def two_the_same(x: All, y: pl.InOut[All]):
    for r in pl.range(pld.world_size()):
        stores(x[r : r + 1], y, pl.min(r, 2), device=r)
    return y


@pl.jit.host
def all_to_one(x: All, y: pl.InOut[All]):
    for r in pl.range(pld.world_size()):
        adds(x[r : r + 1], y, 0, device=r)
    return y


@pl.jit.host
def one_after_the_other(x: All, y: pl.InOut[All]):
    stores(x[0:1], y, 0, device=0)
    stores(x[1:2], y, 0, device=1)
    for r in pl.range(pld.world_size()):
        stores(x[r : r + 1], y, (r + 1) % 4, device=r)
    return y


@pl.jit.host
def turns_of_a_loop(x: All, y: pl.InOut[All]):
    for step in pl.range(2):
        for r in pl.range(pld.world_size()):
            stores(x[r : r + 1], y, (r + step) % 4, device=r)
    return y


def test_turns_of_one_statement_write_parts_of_one_tensor() -> None:
    x = ROWS
    assert np.array_equal(run(each_its_own, x), x)
    assert np.array_equal(run(all_to_one, x)[0], x.sum(0))
    assert np.array_equal(run(one_after_the_other, x), np.roll(x, 1, axis=0))


@pytest.mark.parametrize("host", [two_the_same, turns_of_a_loop], ids=lambda host: host.name)
def test_turns_of_one_statement_that_write_one_element_are_a_race(host: Any) -> None:
    with pytest.raises(RaceError) as caught:
        run(host, np.ones((4, 8), np.float32))
    assert "writes element [0, 0] of what this touches, which rank" in caught.value.message
    assert "pl.store(" in str(caught.value) and "test_caller_memory.py:" in caught.value.notes[0]
    assert "turns of one statement go on side by side" in caught.value.help


Cell = pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]


@pl.jit
def reads_and_tells(y: All, z: pl.InOut[Row], cell: Cell):
    with pl.at(level=pl.Level.CORE_GROUP):
        z = pl.store(pl.load(y, [0, 0], [1, 8]), [0, 0], z)
        pld.system.notify(cell, 1, [0, 0], 1, op=pld.NotifyOp.Set)
    return z


@pl.jit
def waits_and_writes(x: Row, y: pl.InOut[All], cell: Cell, waits: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        if waits:
            pld.system.wait(cell, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        y = pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], y)
    return y


@pl.jit.host
def written_behind_a_signal(x: All, waits: pl.Scalar[pl.INT32], z: pl.InOut[All], y: pl.InOut[All]):
    cells = pld.alloc_window_buffer(4)
    cell = pld.window(cells, [1, 1], dtype=pl.INT32)
    reads_and_tells(y, z[0:1], cell, device=0)
    waits_and_writes(x[0:1], y, cell, waits, device=1)
    return y


def test_what_ranks_with_windows_read_and_write_takes_a_signal() -> None:
    x, z, y = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32), np.full((4, 8), 7, np.float32)
    config = RunConfig(platform="interpret", device_ids=range(2))
    written_behind_a_signal(x, 1, z, y, config=config)
    assert z[0, 0] == 7 and y[0, 0] == 1
    with pytest.raises(RaceError, match=r"rank 1 writes element \[0, 0\] of what this touches, which rank 0 reads"):
        written_behind_a_signal(x, 0, z, y, config=config)


@pl.jit.host
def decides_too_early(x: All, y: pl.InOut[All]):
    stores(x[0:1], y, 0, device=0)
    if pl.read(y, [0, 0]) > 0.0:
        stores(x[0:1], y, 1, device=0)
    return y


@pl.jit.host
def decides_by_the_rest(x: All, y: pl.InOut[All]):
    reads(x, y[0:1], 0, device=0)
    if y[3, 0] > 0.0:
        stores(x[0:1], y, 1, device=0)
    return y


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_host_function_looks_at_no_element_that_it_has_written(platform: str) -> None:
    with pytest.raises(ExecutionError, match="looks at elements before `stores` has written them") as caught:
        run(decides_too_early, np.ones((4, 8), np.float32), platform=platform)
    assert "pl.read(y, [0, 0]) > 0.0" in str(caught.value) and "is dispatched at" in caught.value.notes[0]
    assert run(decides_by_the_rest, np.ones((4, 8), np.float32), platform=platform)[1, 0] == 0


@pl.jit.host
def writes_itself(x: All, y: pl.InOut[All]):
    stores(x[0:1], y, 0, device=0)
    pl.write(y, [1, 0], 3.0)
    return y


@pl.jit.host
def assembles(x: All, y: pl.InOut[All]):
    y = pl.assemble(y, x[0:1], [2, 0])
    return y


@pytest.mark.parametrize("host", [writes_itself, assembles], ids=lambda host: host.name)
@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_host_function_writes_no_tensor(platform: str, host: Any) -> None:
    with pytest.raises(ControlPlaneComputeError, match="a host function writes no tensor"):
        run(host, np.ones((4, 8), np.float32), platform=platform)


@pl.jit.host
def sums_up(x: All, y: pl.InOut[All]):
    total = pl.create_tensor([4, 8], dtype=pl.FP32, init_value=1.0)
    for r in pl.range(pld.world_size()):
        adds(x[r : r + 1], total, r, device=r)
    for r in pl.range(pld.world_size()):
        reads(total, y[r : r + 1], r, device=r)
    return y


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_tensor_that_a_host_function_fills_begins_like_that_in_every_call(platform: str) -> None:
    x = ROWS
    for k in range(3):
        assert np.array_equal(run(sums_up, x + k, platform=platform), x + k + 1)
