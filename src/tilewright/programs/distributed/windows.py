"""Windows in memory: the buffers of a plan, a part on every rank of their domains, with what code finds in front."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.core.world import elements_of
from tilewright.interpret.hosts import Window, WindowBuffer
from tilewright.native.domains import HEAD, Record

ALIGNED = 64


class Parts:
    """The parts of one buffer, in the order of the ranks of its domain."""

    def __init__(self, buffer: WindowBuffer, abort: int) -> None:
        self.domain = buffer.domain
        self.parts: Mapping[int, Array] = {rank: _aligned(HEAD + buffer.size) for rank in self.domain}
        addresses = [self.address(rank) for rank in self.domain]
        self._records = [domain_record(number, addresses, abort) for number in range(len(addresses))]
        for address, record in zip(addresses, self._records, strict=True):
            ctypes.c_int64.from_address(address - 8).value = ctypes.addressof(record)

    def address(self, rank: int) -> int:
        """Return where the memory of a rank starts."""
        return self.parts[rank].ctypes.data + HEAD

    def array(self, rank: int, window: Window) -> Array:
        """Return a rank's part of a window."""
        return elements_of(self.parts[rank][HEAD:], window.shape, window.dtype.numpy)

    def clear(self) -> None:
        """Let all of it be zero."""
        for part in self.parts.values():
            part[HEAD:] = 0


def domain_record(number: int, addresses: Sequence[int], abort: int) -> ctypes.Array[ctypes.c_int64]:
    """Return the record of a domain as one of its ranks sees it."""
    words = [0] * Record.PARTS + list(addresses)
    words[Record.RANK], words[Record.COUNT], words[Record.ABORT] = number, len(addresses), abort
    return (ctypes.c_int64 * len(words))(*words)


def _aligned(size: int) -> Array:
    whole = np.zeros(size + ALIGNED, np.uint8)
    start = -whole.ctypes.data % ALIGNED
    return whole[start : start + size]
