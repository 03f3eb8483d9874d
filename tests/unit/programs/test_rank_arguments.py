"""Collectives of kernels on windows without a row for each rank, and host functions on strided tensors."""
# annotations are evaluated: they name what encloses the functions

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.errors import ExecutionError
from tilewright.runtime import RunConfig

Row = pl.Tensor[[1, 8], pl.FP32]
Rows = pl.Tensor[[2, 1, 8], pl.FP32]
NAMES = ["all_to_all", "allgather", "reduce_scatter", "allreduce", "barrier"]


def calling(name: str, rows: int, cells: int) -> pl.JITFunction:
    """Return a host function of two ranks, one collective on windows of so many rows and signals of so many cells."""

    @pl.jit
    def chip(
        x: Row,
        v: pl.InOut[pld.DistributedTensor[[rows, 8], pl.FP32]],
        w: pl.InOut[pld.DistributedTensor[[rows, 8], pl.FP32]],
        s: pl.InOut[pld.DistributedTensor[[cells, 1], pl.INT32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            if name == "all_to_all":
                pld.tensor.all_to_all(v, w, s)
            if name == "allgather":
                pld.tensor.allgather(x, w, s)
            if name == "reduce_scatter":
                pld.tensor.reduce_scatter(w, s)
            if name == "allreduce":
                pld.tensor.allreduce(v, s)
            if name == "barrier":
                pld.tensor.barrier(s)

    @pl.jit.host
    def host(x: Rows):
        b = pld.alloc_window_buffer([rows, 8], dtype=pl.FP32)
        c = pld.alloc_window_buffer([rows, 8], dtype=pl.FP32)
        d = pld.alloc_window_buffer([cells, 1], dtype=pl.INT32)
        for r in pl.range(2):
            v, w = pld.window(b, [rows, 8], dtype=pl.FP32), pld.window(c, [rows, 8], dtype=pl.FP32)
            chip(x[r], v, w, pld.window(d, [cells, 1], dtype=pl.INT32), device=r)

    return host


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize("name", NAMES)
def test_windows_without_a_row_for_each_rank_are_named(name: str, platform: str) -> None:
    x, config = np.ones((2, 1, 8), np.float32), RunConfig(platform=platform, device_ids=[0, 1])
    calling(name, 2, 2)(x, config=config)
    with pytest.raises(ExecutionError, match=rf"`signal` of {name} is a window of \[1, 1\], which has not a row"):
        calling(name, 2, 1)(x, config=config)
    if name not in ("allreduce", "barrier"):
        with pytest.raises(ExecutionError, match=rf"`target` of {name} is a window of \[1, 8\], which has not a row"):
            calling(name, 1, 2)(x, config=config)


@pl.jit
def copy(x: Row, y: pl.Out[Row]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], y)
    return y


@pl.jit.host
def copying(x: Rows, y: pl.Out[Rows]):
    for r in pl.range(2):
        copy(x[r], y[r], device=r)
    return y


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_tensors_whose_neighbours_lie_apart_are_taken_and_written(platform: str) -> None:
    config = RunConfig(platform=platform, device_ids=[0, 1])
    x: Any = np.broadcast_to(np.full(1, 3, np.float32), (2, 1, 8))
    around = np.zeros((2, 1, 16), np.float32)
    y = around[:, :, ::2]
    copying(x, y, config=config)
    assert np.array_equal(y, x) and not around[:, :, 1::2].any()
