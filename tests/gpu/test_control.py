"""Control flow on the GPU: loops that end early, and functions that do, against the processor."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright.language as pl
from tilewright.errors import ExecutionError

torch: Any = pytest.importorskip("torch")


@pl.jit
def collatz(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = pl.read(x, [row])
            steps = n * 0
            while n > 1:
                if n % 2 < 1:
                    n = n // 2
                else:
                    n = 3 * n + 1
                steps = steps + 1
            pl.write(out, [row], steps)
    return out


@pl.jit
def summed_up_to(x: pl.Tensor, limit: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.tile.full([1, 64], dtype=pl.FP32, value=0.0)
        for row in pl.range(0, x.shape[0]):
            if pl.read(x, [row, 0]) < 0.0:
                continue
            total = total + pl.load(x, [row, 0], [1, 64])
            if pl.read(x, [row, 1]) > limit:
                break
            total = total * 2.0
        pl.store(total, [0, 0], out)
    return out


@pl.jit.incore
def fill(x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.Scalar[pl.INDEX]):
    t = pl.load(x, [0, 0], [1, 64])
    if n < 0:
        return out
    for row in pl.range(0, 8):
        out = pl.store(t + pl.cast(row, pl.FP32), [row, 0], out)
        for column in pl.range(8):
            if row * column >= n:
                return out
    out = pl.store(t * 3.0, [0, 0], out)
    return out


@pl.jit
def filled(x: pl.Tensor, n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor]):
    out = fill(x, out, n)
    return out


def test_while_runs_as_often_as_it_has_to() -> None:
    x = torch.arange(1, 60, dtype=torch.int32)
    assert torch.equal(collatz(x.cuda()).cpu(), collatz(x))


def test_turns_are_skipped_and_loops_left() -> None:
    x = torch.randn(16, 64, generator=torch.Generator().manual_seed(3))
    for limit in (-9.0, 0.5, 9.0):
        assert torch.equal(summed_up_to(x.cuda(), limit).cpu(), summed_up_to(x, limit))


def test_functions_return_before_their_end() -> None:
    x = torch.randn(1, 64, generator=torch.Generator().manual_seed(4))
    for n in (-1, 0, 5, 14, 1000):
        ours, theirs = torch.zeros(8, 64, device="cuda"), torch.zeros(8, 64)
        filled(x.cuda(), n, ours)
        filled(x, n, theirs)
        assert torch.equal(ours.cpu(), theirs), n


@pl.jit
def swapped(x: pl.InOut[pl.Tensor], y: pl.InOut[pl.Tensor], turns: pl.Scalar[pl.INDEX]):
    """A loop that chooses which tensor it reads and which it writes."""
    with pl.at(level=pl.Level.CORE_GROUP):
        here, there = x, y
        for _ in pl.range(turns):
            pl.store(pl.load(here, [0, 0], [8, 64]) * 2.0 + pl.load(there, [0, 0], [8, 64]), [0, 0], there)
            here, there = there, here
    return x, y


def test_loops_choose_tensors() -> None:
    for turns in range(4):
        ours = [torch.randn(8, 64, generator=torch.Generator().manual_seed(seed)) for seed in range(2)]
        theirs = [each.cuda() for each in ours]
        swapped(*ours, turns)
        swapped(*theirs, turns)
        assert all(torch.equal(a, b.cpu()) for a, b in zip(ours, theirs, strict=True)), turns


@pl.jit
def last_of(x: pl.Tensor, rows: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    """A loop that binds a name for the first time."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for row in pl.range(rows):
            last = pl.load(x, [row, 0], [1, 64])
        pl.store(last, [0, 0], out)  # pyright: ignore[reportPossiblyUnboundVariable]
    return out


def test_a_name_that_a_loop_binds_is_there_where_it_ran() -> None:
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(3)).cuda()
    program = last_of.compile(x, rows=pl.RUNTIME)
    assert torch.equal(program(x, 3), x[2:3])
    with pytest.raises(ExecutionError, match="'last' has no value here"):
        program(x, 0)
        torch.cuda.synchronize()
        program(x, 1)


@pl.jit
def halved_until_small(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """A loop that is left in its middle, and carries a tile."""
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.cast(pl.load(x, [row, 0], [16, 64]), pl.FP32)
            while True:
                t = pl.row_expand_mul(t, pl.row_max(t) * 0.0 + 0.5)
                pl.store(t, [row, 0], out)
                if pl.read(out, [row, 0]) < 0.1:
                    break
    return out


def test_a_loop_is_left_where_it_finds_what_it_looks_for() -> None:
    x = torch.rand(64, 64, generator=torch.Generator().manual_seed(5)).half()
    ours, theirs = torch.empty(64, 64, device="cuda"), torch.empty(64, 64)
    halved_until_small(x.cuda(), ours)
    halved_until_small(x, theirs)
    assert torch.equal(ours.cpu(), theirs)
