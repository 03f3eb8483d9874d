"""Windows on GPUs: the buffers of a plan, a part in the memory of every rank's GPU, with what kernels find in front.

A rank's parts are one allocation. In front of each lies the record of its domain, as the GPU reads it; the host has a
copy of it for what chips ask outside of kernels.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.backends.devices import DeviceMemory, Devices, Seat
from tilewright.core.region import Array
from tilewright.interpret.hosts import Window, WindowBuffer
from tilewright.native.domains import HEAD, Record
from tilewright.programs.distributed.windows import domain_record
from tilewright.records import record

ALIGNED = 256
"""Bytes that parts begin at a multiple of."""


class DeviceParts:
    """The parts of one buffer, in the order of the ranks of its domain."""

    def __init__(self, starts: Mapping[int, int]) -> None:
        self.starts = starts
        """Where the part of each rank of the domain begins."""
        self.copies = len(starts)

    def array(self, rank: int, window: Window) -> Array:
        """Return a rank's part of a window as an array whose elements the host cannot look at."""
        return unseen(self.starts[rank], window.shape, window.dtype.numpy)

    def waits(self, rank: int) -> int:
        """Return 0: on a GPU waits are ended by the words that a window's record names."""
        return 0

    def clear(self) -> None:
        """Do nothing: all buffers are cleared together."""


def unseen(address: int, shape: Sequence[int], dtype: Any) -> Array:
    """Return memory of a GPU as an array of one of NumPy's types, of which nobody may touch an element."""
    held: Any = _Memory(address, tuple(shape), np.dtype(dtype).itemsize)
    made: Any = np.asarray(held)
    return made.view(dtype)


class _Memory:
    """Memory by NumPy's protocol for what is not its own."""

    def __init__(self, address: int, shape: tuple[int, ...], size: int) -> None:
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": f"<u{size}", "data": (address, False)}


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
            offsets[buffer] = aligned(end + 8 * (Record.PARTS + len(buffer.domain)) + HEAD)
            end = offsets[buffer] + buffer.size
        return Layout(offsets, aligned(end))


def aligned(size: int) -> int:
    """Return a size so that what follows is aligned, too."""
    return -(-size // ALIGNED) * ALIGNED


class DeviceWindows:
    """The windows of a plan, in memory of each rank that runs here; of all ranks it is known where that begins."""

    def __init__(
        self, devices: Devices, buffers: Sequence[WindowBuffer], layouts: Sequence[Layout], seats: Mapping[int, Seat],
        memory: Mapping[int, DeviceMemory], bases: Sequence[int], aborts: Mapping[int, int],
    ) -> None:  # fmt: skip
        self._devices, self._memory, self._held = devices, memory, list[object]()
        self.gpus = [devices.holder(base) for base in bases]
        """Of each rank, the device that its memory lies on."""
        self.heads: dict[int, dict[int, int]] = {rank: {} for rank in seats}
        """Of each rank that runs here, where the host reads what lies in front of a window, by its address."""
        self.parts: dict[WindowBuffer, DeviceParts] = {}
        self._cleared: list[tuple[Seat, int, int]] = []
        for buffer in buffers:
            starts = {rank: bases[rank] + layouts[rank].offsets[buffer] for rank in buffer.domain}
            self.parts[buffer] = DeviceParts(starts)
            for rank in (each for each in buffer.domain if each in seats):
                self._introduce(buffer, rank, layouts[rank].offsets[buffer], list(starts.values()), aborts[rank])
                self._cleared += [(seats[rank], starts[rank], buffer.size)] if buffer.size else []

    def clear(self) -> None:
        """Let the memory of the ranks that run here be zero."""
        self._devices.clear(self._cleared)

    def _introduce(self, buffer: WindowBuffer, rank: int, offset: int, starts: Sequence[int], abort: int) -> None:
        """Write what lies in front of a part, on the GPU and for the host."""
        memory = self._memory[rank]
        words = domain_record(buffer.domain.index(rank), starts, abort, len(starts))
        at = offset - HEAD - len(bytes(words))
        memory.write(at, bytes(words))
        memory.write(offset - 8, (memory.address + at).to_bytes(8, "little"))
        head = (ctypes.c_int64 * (HEAD // 8))()
        head[-1] = ctypes.addressof(words)
        self._held += [words, head]
        self.heads[rank][memory.address + offset] = ctypes.addressof(head) + HEAD
