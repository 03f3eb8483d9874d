"""Devices that are none: their memory is the host's, and what is launched on them is done at once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from tilewright.backends.devices import Seat

ALIGNED = 256


class HostMemory:
    """Memory of the host in place of a device's, which holds anything but zeros at first."""

    def __init__(self, size: int) -> None:
        self._held = ctypes.create_string_buffer(size + ALIGNED)
        self.address = -(-ctypes.addressof(self._held) // ALIGNED) * ALIGNED
        ctypes.memset(self.address, 0xAB, size)

    def write(self, offset: int, data: bytes) -> None:
        ctypes.memmove(self.address + offset, data, len(data))


class HostDevices:
    """Devices with room for some blocks that wait."""

    def __init__(self) -> None:
        self.callers: list[int] = []
        self.is_busy = False

    def holder(self, address: int) -> int:
        return 0

    def seats(self, device_ids: Sequence[int], *, waits: bool) -> list[Seat]:
        return [Seat(0, number, 16) for number, _ in enumerate(device_ids)]

    def reach(self, device: int, other: int) -> None:
        pass

    def memory(self, device: int, size: int) -> HostMemory:
        return HostMemory(size)

    def words(self, count: int) -> Any:
        return (ctypes.c_int64 * count)()

    def clear(self, parts: Sequence[tuple[Seat, int, int]]) -> None:
        for _, address, size in parts:
            ctypes.memset(address, 0, size)

    def is_done(self, seat: Seat) -> bool:
        return not self.is_busy

    def await_callers(self, device: int) -> None:
        self.callers.append(device)
