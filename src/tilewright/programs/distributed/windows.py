"""Windows in memory: the buffers of a plan, a part on every rank of their domains, with what code finds in front."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Protocol

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.core.world import elements_of
from tilewright.interpret.hosts import Window, WindowBuffer
from tilewright.native.domains import HEAD, Record

ALIGNED = 64


class Cleared(Protocol):
    """Memory that is zero when a run begins."""

    def clear(self) -> None:
        """Let the memory of the ranks that run here be zero."""
        ...


class Placed(Cleared, Protocol):
    """The parts of one buffer, wherever they lie."""

    copies: int

    def array(self, rank: int, window: Window) -> Array:
        """Return a rank's part of a window."""
        ...

    def waits(self, rank: int) -> int:
        """Return where the words lie that end the waits of a rank which runs here."""
        ...


class Parts:
    """The parts of one buffer, in the order of the ranks of its domain; those of ranks that run here have records.

    `aborts` says for those where the word lies that ends their waits. The parts lie in so many `copies`, where not each
    in its own; none of them where all are views of other buffers. Where ranks share no memory, code sees what is `seen`
    of each rank's part, and tells whoever is at the address `distant` when it does.
    """

    def __init__(
        self, memory: Mapping[int, Array], aborts: Mapping[int, int], copies: int | None = None, *,
        seen: Mapping[int, Array] | None = None, distant: int = 0,
    ) -> None:  # fmt: skip
        self.memory = memory
        self._seen = memory if seen is None else seen
        self._aborts = aborts
        self.here = [rank for rank in memory if rank in aborts]
        self.copies = len(memory) if copies is None else copies
        addresses = [part.ctypes.data + HEAD for part in self._seen.values()]
        self._records = [
            domain_record(list(memory).index(rank), addresses, aborts[rank], self.copies, distant) for rank in self.here
        ]
        for rank, record in zip(self.here, self._records, strict=True):
            ctypes.c_int64.from_address(self.address(rank) - 8).value = ctypes.addressof(record)

    def address(self, rank: int) -> int:
        """Return where the memory of a rank starts."""
        return self.memory[rank].ctypes.data + HEAD

    def array(self, rank: int, window: Window) -> Array:
        """Return a rank's part of a window."""
        return elements_of(self.memory[rank][HEAD:], window.shape, window.dtype.numpy)

    def waits(self, rank: int) -> int:
        """Return where the words lie that end the waits of a rank which runs here."""
        return self._aborts[rank]

    def clear(self) -> None:
        """Let the memory of the ranks that run here be zero."""
        for rank in self.here[: self.copies]:
            self.memory[rank][HEAD:] = 0


def domain_record(
    number: int, addresses: Sequence[int], abort: int, copies: int, distant: int = 0
) -> ctypes.Array[ctypes.c_int64]:
    """Return the record of a domain as one of its ranks sees it."""
    words = [0] * Record.PARTS + list(addresses)
    words[Record.RANK], words[Record.COUNT], words[Record.ABORT] = number, len(addresses), abort
    words[Record.COPIES], words[Record.DISTANT] = copies, distant
    return (ctypes.c_int64 * len(words))(*words)


def own_parts(buffer: WindowBuffer, aborts: Mapping[int, int]) -> Parts:
    """Return the parts of a buffer all of whose ranks run in this process."""
    return Parts({rank: part_of(buffer) for rank in buffer.domain}, aborts)


def part_of(buffer: WindowBuffer) -> Array:
    """Return memory for a part of a buffer, with room in front of it."""
    return _aligned(room_of(buffer))


def room_of(buffer: WindowBuffer) -> int:
    """Return how many bytes a part takes, what lies in front of it among them."""
    return HEAD + aligned(buffer.size)


def aligned(size: int) -> int:
    """Return a size so that what follows is aligned, too."""
    return -(-size // ALIGNED) * ALIGNED


def _aligned(size: int) -> Array:
    whole = np.zeros(size + ALIGNED, np.uint8)
    start = -whole.ctypes.data % ALIGNED
    return whole[start : start + size]
