"""Elements that host functions read for kernels: which kernels read themselves, and for which the host waits."""

# pyright: basic
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright.backends.cuda.host.kernels import Launch, Wait

X, N = np.ones((64, 64), np.float32), np.ones(4, np.int32)


@pl.jit
def scaled(x: pl.Tensor, n: pl.Tensor, out: pl.Out[pl.Tensor]):
    at = pl.read(n, [0])
    count = pl.read(n, [at])
    gain = pl.cast(count, pl.FP32) * 0.5
    for i in pl.parallel(0, 64, 16):
        for j in pl.parallel(0, 64, 32):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [i, j], [16, 32]) * gain, [i, j], out)
    return out


@pl.jit
def by_the_largest(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    most = pl.create_tensor([1, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.col_max(pl.load(x, [0, 0], [64, 64])), [0, 0], most)
    first = pl.read(most, [0, 0])
    for i in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i, 0], [16, 64]) * first, [i, 0], out)
    for i in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(out, [i, 0], [16, 64]) + first, [i, 0], out)
    return out


def starts(kernel: Any, *args: Any) -> list[str]:
    """Return what a program starts, by arguments, and what it waits for."""
    found = written(kernel.specialize(*args).program).launches
    return [", ".join(each.arguments) if isinstance(each, Launch) else each.why for each in found]


def test_kernels_read_what_they_alone_need() -> None:
    assert starts(scaled, X, N, X) == ["n, x, out"]
    assert starts(by_the_largest, X, X) == ["x, most", "most, x, out", "most, out"]


def test_a_grid_of_loops_stays_one() -> None:
    (launch,) = written(scaled.specialize(X, N, X).program).launches
    assert isinstance(launch, Launch) and launch.grid == "i in 0:64:16 x j in 0:64:32"


@pl.jit
def written_between(x: pl.Tensor, n: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
    gain = pl.cast(pl.read(n, [0]), pl.FP32)
    pl.write(n, [0], 7)
    for i in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i, 0], [16, 64]) * gain, [i, 0], out)
    return out


@pl.jit
def written_through_a_view(x: pl.Tensor, n: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
    gain = pl.cast(pl.read(n, [3]), pl.FP32)
    for i in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i, 0], [16, 64]) * gain, [i, 0], out)
            pl.write(n[0:2], [0], 3)
    return out


@pl.jit
def written_by_an_earlier_kernel_of_two(n: pl.Tensor, out: pl.InOut[pl.Tensor]):
    gain = pl.read(out, [0, 0])
    for i in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(out, [i, 0], [16, 64]) * 2.0, [i, 0], out)
    most = pl.create_tensor([64, 64], dtype=pl.FP32)
    for i in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(out, [i, 0], [16, 64]) * gain, [i, 0], most)
    return most


@pl.jit
def part_of_a_grid(x: pl.Tensor, n: pl.Tensor, out: pl.Out[pl.Tensor]):
    count = pl.read(n, [0])
    for i in pl.parallel(4):
        for j in pl.parallel(count):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [i * 16, j], [16, 1]) * pl.cast(count, pl.FP32), [i * 16, j], out)
    return out


@pl.jit
def decided_by(x: pl.Tensor, n: pl.Tensor, out: pl.InOut[pl.Tensor]):
    count = pl.read(n, [0])
    gain = pl.cast(count, pl.FP32)
    if count > 3:
        for i in pl.parallel(0, 64, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [i, 0], [16, 64]) * gain, [i, 0], out)
    return out


@pytest.mark.parametrize(
    "kernel", [written_between, written_through_a_view, part_of_a_grid, decided_by], ids=lambda kernel: kernel.__name__
)
def test_the_host_reads_what_is_written_before_a_kernel_is_done_or_what_it_needs_itself(kernel: Any) -> None:
    found = written(kernel.specialize(X, N, X).program).launches
    assert found[0] == Wait(found[0].line, "to read an element of `n`")


def test_the_host_reads_before_a_kernel_writes_what_a_later_one_needs() -> None:
    assert starts(written_by_an_earlier_kernel_of_two, N, X)[0] == "to read an element of `out`"
