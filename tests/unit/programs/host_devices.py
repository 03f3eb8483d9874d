"""Devices that are none: their memory is the host's, and what is launched on them is done at once."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from typing import Any

from tilewright.backends.devices import Seat
from tilewright.errors import ExecutionError


class HostMemory:
    """Memory of the host in place of a device's, which holds anything but zeros at first."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self._size = descriptor, size
        self._held = mmap.mmap(descriptor, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._held))

    @property
    def handle(self) -> bytes:
        return f"{os.getpid()} {self._descriptor} {self._size}".encode()

    def write(self, offset: int, data: bytes) -> None:
        ctypes.memmove(self.address + offset, data, len(data))


class HostDevices:
    """Devices with room for some blocks that wait."""

    def __init__(self) -> None:
        self.callers: list[int] = []
        self.is_busy = self.is_out_of_reach = False

    def holder(self, address: int) -> int:
        return 0

    def seats(self, device_ids: Sequence[int], *, waits: bool) -> list[Seat]:
        return [Seat(0, number, 16) for number, _ in enumerate(device_ids)]

    def reach(self, device: int, other: int) -> None:
        pass

    def memory(self, device: int, size: int, *, is_shared: bool = False) -> HostMemory:
        descriptor = os.memfd_create("device")
        os.ftruncate(descriptor, max(size, 1))
        made = HostMemory(descriptor, max(size, 1))
        ctypes.memset(made.address, 0xAB, size)
        return made

    def words(self, count: int) -> Any:
        return (ctypes.c_int64 * count)()

    def clear(self, parts: Sequence[tuple[Seat, int, int]]) -> None:
        for _, address, size in parts:
            ctypes.memset(address, 0, size)

    def is_done(self, seat: Seat) -> bool:
        return not self.is_busy

    def await_callers(self, device: int) -> None:
        self.callers.append(device)

    def seat(self, device_id: int) -> Seat:
        return Seat(0, 0, 16)

    def identity(self, device: int) -> bytes:
        return b"the processor"

    def opened(self, device: int, handle: bytes) -> HostMemory:
        if self.is_out_of_reach:
            raise ExecutionError("no peer access")
        process, descriptor, size = map(int, handle.split())
        return HostMemory(os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR), size)

    def shown(self, words: Any) -> object:
        return words

    def copy(self, target: Any, source: Any) -> None:
        target[...] = source
