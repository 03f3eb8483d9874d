"""Devices: where ranks run that reach into each other's memory, which is not the host's, and what they share there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from tilewright.core.region import Array
from tilewright.records import record


@record
class Seat:
    """Where a rank runs: a device, a stream of its own, and how many of its blocks may wait for others at a time."""

    device: int
    stream: int
    room: int
    heads: Mapping[int, int] = field(default_factory=dict[int, int])
    """Where the host reads what lies in front of a window, by the window's address."""


class DeviceMemory(Protocol):
    """Bytes of a device, given back with this object."""

    address: int

    @property
    def handle(self) -> bytes:
        """What another process opens them by, where they were asked for to be shared."""
        ...

    def write(self, offset: int, data: bytes) -> None:
        """Copy bytes of the host's into it."""
        ...


class Devices(Protocol):
    """The devices of one kind that ranks run on."""

    def holder(self, address: int) -> int:
        """Return the device that some memory lies on."""
        ...

    def seats(self, device_ids: Sequence[int], *, waits: bool) -> list[Seat]:
        """Return where ranks run; ExecutionError where those that wait for each other might not do so at one time."""
        ...

    def reach(self, device: int, other: int) -> None:
        """Let a device reach the memory of another; ExecutionError where it cannot."""
        ...

    def memory(self, device: int, size: int, *, is_shared: bool = False) -> DeviceMemory:
        """Return so many bytes of a device, perhaps for other processes, too."""
        ...

    def words(self, count: int) -> Any:
        """Return words of the host's that all devices see at the same address."""
        ...

    def clear(self, parts: Sequence[tuple[Seat, int, int]]) -> None:
        """Let memory of ranks be zero, addresses and sizes, once their streams have nothing left to do."""
        ...

    def is_done(self, seat: Seat) -> bool:
        """Return whether a rank's stream has nothing left to do; ExecutionError where something has failed there."""
        ...

    def await_callers(self, device: int) -> None:
        """Wait for what the caller has started on a device, whose current stream that is."""
        ...

    # processes

    def seat(self, device_id: int) -> Seat:
        """Return where the rank of this process runs, as if nobody else ran there."""
        ...

    def identity(self, device: int) -> bytes:
        """Return what tells a device from all others of the machine, in every process."""
        ...

    def opened(self, device: int, handle: bytes) -> DeviceMemory:
        """Return memory of another process for a device of this one; ExecutionError where that cannot reach it."""
        ...

    def shown(self, words: Array) -> object:
        """Let all devices see memory of the host at its own address, for as long as somebody holds what this gives."""
        ...

    def copy(self, target: Array, source: Array) -> None:
        """Copy elements behind what the caller has started, and return once they are there."""
        ...
