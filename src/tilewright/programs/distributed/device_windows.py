"""Windows on GPUs: the buffers of a plan, a part in the memory of every rank's GPU, with what kernels find in front.

A rank's parts are one allocation. In front of each lies the record of its domain, as the GPU reads it; the host has a
copy of it for what chips ask outside of kernels.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.backends.cuda.loaded import Seat
from tilewright.backends.cuda.ranks import DeviceMemory, clear
from tilewright.core.region import Array
from tilewright.dtypes import DataType
from tilewright.interpret.hosts import Window, WindowBuffer
from tilewright.native.domains import HEAD, Record
from tilewright.programs.distributed.windows import domain_record
from tilewright.records import record

ALIGNED = 256
"""Bytes that parts begin at a multiple of."""


class DeviceParts:
    """The parts of one buffer, in the order of the ranks of its domain."""

    def __init__(self, buffer: WindowBuffer, starts: Mapping[int, int], seats: Mapping[int, Seat]) -> None:
        self.buffer = buffer
        self.starts = starts
        """Where the part of each rank of the domain begins."""
        self._seats = seats
        self.copies = len(starts)

    def array(self, rank: int, window: Window) -> Array:
        """Return a rank's part of a window as an array whose elements the host cannot look at."""
        return unseen(self.starts[rank], window.shape, window.dtype)

    def clear(self) -> None:
        """Let the memory of the ranks that run here be zero."""
        for rank, seat in self._seats.items():
            if rank in self.starts and self.buffer.size:
                clear(seat, self.starts[rank], self.buffer.size)


def unseen(address: int, shape: Sequence[int], dtype: DataType) -> Array:
    """Return memory of a GPU as an array, of which nobody may touch an element."""
    return np.asarray(_Memory(address, tuple(shape), dtype)).view(dtype.numpy)


class _Memory:
    """Memory by NumPy's protocol for what is not its own."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: DataType) -> None:
        typed = f"<u{dtype.get_byte()}"
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": typed, "data": (address, False)}


@record
class Layout:
    """Where a rank's parts lie in its memory, by buffer, and how much memory that is."""

    offsets: Mapping[WindowBuffer, int]
    size: int

    @staticmethod
    def of(buffers: Sequence[WindowBuffer], rank: int) -> Layout:
        """Return where the parts of one rank lie, each behind room for its record."""
        offsets: dict[WindowBuffer, int] = {}
        end = 0
        for buffer in (each for each in buffers if rank in each.ranks):
            offsets[buffer] = _aligned(end + 8 * (Record.PARTS + len(buffer.domain)) + HEAD)
            end = offsets[buffer] + buffer.size
        return Layout(offsets, _aligned(end))


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


class DeviceWindows:
    """The windows of a plan: memory of each rank that runs here, that of others as they were told."""

    def __init__(
        self, buffers: Sequence[WindowBuffer], seats: Mapping[int, Seat], aborts: Mapping[int, int],
        bases: Mapping[int, int] | None = None,
    ) -> None:  # fmt: skip
        self._held: list[Any] = []
        ranks = sorted({rank for buffer in buffers for rank in buffer.ranks} | set(seats))
        self.layouts = {rank: Layout.of(buffers, rank) for rank in ranks}
        self.memory = {rank: DeviceMemory(seat.device, self.layouts[rank].size) for rank, seat in seats.items()}
        known = {rank: each.address for rank, each in self.memory.items()} | dict(bases or {})
        self.heads: dict[int, dict[int, int]] = {rank: {} for rank in seats}
        """Of each rank that runs here, where the host reads what lies in front of a window, by its address."""
        self.parts: dict[WindowBuffer, DeviceParts] = {}
        for buffer in buffers:
            starts = {rank: known[rank] + self.layouts[rank].offsets[buffer] for rank in buffer.domain}
            self.parts[buffer] = DeviceParts(buffer, starts, seats)
            for rank in (each for each in buffer.domain if each in seats):
                self._introduce(buffer, rank, list(starts.values()), aborts[rank])

    def _introduce(self, buffer: WindowBuffer, rank: int, starts: Sequence[int], abort: int) -> None:
        """Write what lies in front of a part, on the GPU and for the host."""
        number, offset, memory = buffer.domain.index(rank), self.layouts[rank].offsets[buffer], self.memory[rank]
        words = domain_record(number, starts, abort, len(starts))
        at = offset - HEAD - len(bytes(words))
        memory.write(at, bytes(words))
        memory.write(offset - 8, (memory.address + at).to_bytes(8, "little"))
        head = (ctypes.c_int64 * (HEAD // 8))()
        head[-1] = ctypes.addressof(words)
        self._held += [words, head]
        self.heads[rank][memory.address + offset] = ctypes.addressof(head) + HEAD
