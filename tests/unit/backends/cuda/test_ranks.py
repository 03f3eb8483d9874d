"""Ranks in kernels for a GPU, without one: what is written for windows, parts of peers and signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Golden
from unit.backends.cuda.emulated import Line, Machine
from unit.backends.cuda.emulated_memory import Memory
from unit.backends.cuda.written import without_places, written

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright.backends.cuda.host.kernels import KernelText
from tilewright.backends.cuda.host.launches import CROWDED
from tilewright.backends.cuda.host.program import LaunchingProgram
from tilewright.interpret.hosts import chip_program
from tilewright.native.domains import HEAD
from tilewright.passes import chips, control_plane
from tilewright.programs.distributed.windows import domain_record

SIZE = 64
NR = pl.dynamic("NR")
Row = pl.Tensor[[1, SIZE], pl.FP32]
Rows = pl.Tensor[[NR, 1, SIZE], pl.FP32]
Inbox = pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]]
Signal = pl.InOut[pld.DistributedTensor[[1, 2], pl.INT32]]


@pl.jit
def pass_on(x: Row, y: pl.Out[Row], inbox: Inbox, signal: Signal):
    with pl.at(level=pl.Level.CORE_GROUP):
        following = (pld.rank(inbox) + 1) % pld.nranks(inbox)
        pld.tensor.put(inbox, peer=following, src=x)
        pld.system.notify(signal, peer=following, offsets=[0, 1], value=3, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, offsets=[0, 1], expected=3, cmp=pld.WaitCmp.Ge)
        y = pl.store(pl.load(inbox, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit
def apart(x: Row, y: pl.Out[Row], inbox: Inbox, signal: Signal):
    following = (pld.rank(inbox) + 1) % pld.nranks(inbox)
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tensor.put(inbox, peer=following, src=x)
    pld.system.notify(signal, peer=following, offsets=[0, 1], value=3, op=pld.NotifyOp.Set)
    pld.system.wait(signal, offsets=[0, 1], expected=3, cmp=pld.WaitCmp.Eq)
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(inbox, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit
def crowd(x: Row, y: pl.Out[Row], inbox: Inbox, signal: Signal):
    for column in pl.parallel(0, SIZE, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
            y = pl.store(pl.load(inbox, [0, column], [1, 32]), [0, column], y)
    return y


def host_of(chip: Any) -> Any:
    """Return a host function that has every rank run a chip function."""

    @pl.jit.host
    def host(x: Rows, y: pl.Out[Rows]):
        rows = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        cells = pld.alloc_window_buffer(2 * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            inbox = pld.window(rows, [1, SIZE], dtype=pl.FP32)
            chip(x[r], y[r], inbox, pld.window(cells, [1, 2], dtype=pl.INT32), device=r)
        return y

    return host


def unit_of(chip: Any) -> LaunchingProgram:
    """Return a chip function as it is written for a GPU."""
    x = np.ones((2, 1, SIZE), np.float32)
    source = chips.run(control_plane.run(host_of(chip).specialize(x, x).program))
    return written(chip_program(source, chip.__name__))


def kernel_of(chip: Any) -> KernelText:
    (found,) = unit_of(chip).kernels
    return found


class RankMachine(Machine):
    """A machine that does what signals say: a wait looks once, and fails where it would go on."""

    def _tt_elementwise_inline_asm(self, line: Line, text: str) -> list[Any]:
        _, said, rest = text.split('"', 2)
        if "sys.global" not in said:
            return super()._tt_elementwise_inline_asm(line, text)
        cell, number, *_ = self.named(rest.partition("} ")[2].partition(" : ")[0])
        (held,) = self.memory.load(cell.reshape(1), np.dtype(np.int32))
        if "LOOK" in said:
            assert "setp.ge.s32" in said and held >= number, f"it waits for {number}, and its cell is {held}"
        else:
            made = held + number if "red.release.sys.global.add.s32" in said else number
            self.memory.store(cell.reshape(1), np.asarray([made], np.int32))
        return [np.asarray(0, np.int32)]


class World:
    """The windows of two ranks in memory that machines see."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.words = [memory.add(np.zeros(16, np.int64)) for _ in range(2)]
        self.inboxes = self._windows(4 * SIZE)
        self.signals = self._windows(8)
        self.errors = memory.add(np.zeros(1, np.int64))

    def _windows(self, size: int) -> list[int]:
        starts = [self.memory.add(np.zeros(HEAD + size, np.uint8)) + HEAD for _ in range(2)]
        for rank, start in enumerate(starts):
            told = np.frombuffer(bytes(domain_record(rank, starts, self.words[rank], 2)), np.int64)
            self.memory.store(np.asarray([start - 8]), np.asarray([self.memory.add(told)]))
        return starts

    def run(self, kernel: KernelText, rank: int, x: int, y: int) -> None:
        """Run a rank's kernel; its words are addresses and strides in the order in which it names them."""
        words = [self.inboxes[rank], SIZE, x, SIZE, self.signals[rank], 2, y, SIZE, self.errors]
        RankMachine(kernel.aligned, self.memory).run(words, 0)

    def held(self, address: int, count: int, dtype: Any) -> Any:
        places = address + np.dtype(dtype).itemsize * np.arange(count)
        return self.memory.load(places, np.dtype(dtype))


def test_a_kernel_that_signals_and_waits(golden: Golden) -> None:
    golden("cuda/pass_on.ttir", without_places(kernel_of(pass_on).aligned))


def test_a_rank_puts_what_it_has_tells_its_peer_and_reads_what_it_was_put() -> None:
    memory, kernel = Memory(), kernel_of(pass_on)
    world, x = World(memory), np.random.default_rng(1).random((2, SIZE), np.float32)
    given, made = [memory.add(row) for row in x], [memory.add(np.zeros(SIZE, np.float32)) for _ in x]
    with pytest.raises(AssertionError, match="it waits for 3, and its cell is 0"):
        world.run(kernel, 0, given[0], made[0])
    world.run(kernel, 1, given[1], made[1])
    assert list(world.held(world.signals[0], 2, np.int32)) == [0, 3]
    np.testing.assert_array_equal(world.held(world.inboxes[0], SIZE, np.float32), x[1])
    np.testing.assert_array_equal(world.held(made[1], SIZE, np.float32), x[0])


def test_nothing_is_loaded_ahead_of_a_signal() -> None:
    kernel = kernel_of(pass_on)
    assert kernel.schedule.stages == 1 and kernel.parts == 1 and not kernel.described


def test_atomic_changes_of_programs_with_windows_are_seen_by_other_gpus() -> None:
    @pl.jit
    def counted(x: Row, y: pl.Out[Row], inbox: Inbox, signal: Signal):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], inbox, atomic=pl.AtomicType.Add)
        return y

    assert "tt.atomic_rmw fadd, relaxed, sys" in kernel_of(counted).aligned


def test_signals_between_kernels_are_kernels_of_one_block() -> None:
    unit = unit_of(apart)
    assert len(unit.kernels) == 4
    assert "st.release.sys" in unit.kernels[1].aligned and "setp.eq.s32" in unit.kernels[2].aligned


@pl.jit
def alone(x: Row, y: pl.Out[Row], inbox: Inbox, signal: Signal):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pytest.mark.parametrize(("chip", "is_counted"), [(crowd, True), (alone, False)], ids=["crowd", "alone"])
def test_blocks_that_wait_are_counted_before_they_are_launched(chip: Any, is_counted: bool) -> None:
    said = [error.message for error in unit_of(chip).errors]
    assert (CROWDED in said) is is_counted
