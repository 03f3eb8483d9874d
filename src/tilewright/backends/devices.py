"""Devices: where ranks run that reach into each other's memory, which is not the host's, and what they share there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

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

    def memory(self, device: int, size: int) -> DeviceMemory:
        """Return so many bytes of a device."""
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
