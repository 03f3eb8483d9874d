"""Mapped memory: the parts of buffers as pieces of files, so that one piece lies in the memory of several ranks."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import contextmanager

from tilewright.core.region import Array
from tilewright.interpret.hosts import Plan, WindowBuffer
from tilewright.native.domains import HEAD
from tilewright.native.pages import held_pages, map_pages
from tilewright.programs.distributed.in_place import PAGE, InPlace
from tilewright.programs.distributed.windows import Parts
from tilewright.records import record

_FIXED = 0x10


@record
class Piece:
    """Some pages of the file of a rank."""

    rank: int
    offset: int
    size: int


class Pieces:
    """Where the buffers of a plan lie that gathers are read from in place: of which ranks' files, and which pages."""

    def __init__(self, plan: Plan, chosen: InPlace) -> None:
        self.chosen = chosen
        self.rooms = [0] * plan.size
        """How many bytes the file of each rank has to have."""
        self.of: dict[WindowBuffer, dict[int, list[Piece]]] = {}
        for buffer in plan.buffers:
            if buffer in chosen.gathered.values():
                self.of[buffer] = {rank: [self._made(rank, buffer)] for rank in buffer.domain}
            elif buffer in chosen.shared:
                self.of[buffer] = dict.fromkeys(buffer.domain, [self._made(buffer.domain[0], buffer)])
        for target, rows in chosen.gathered.items():
            size = target.size // len(target.domain)
            pieces = [Piece(each.rank, each.offset, size) for rank in rows.domain for each in self.of[rows][rank]]
            self.of[target] = dict.fromkeys(target.domain, pieces)

    def _made(self, rank: int, buffer: WindowBuffer) -> Piece:
        piece = Piece(rank, self.rooms[rank], -(-buffer.size // PAGE) * PAGE)
        self.rooms[rank] += piece.size
        return piece

    def parts(self, aborts: Mapping[int, int], file: Callable[[int], tuple[int, int]]) -> dict[WindowBuffer, Parts]:
        """Return the parts of those buffers; `file` gives the descriptor of a rank's, and where its pages start."""
        return {
            buffer: Parts(self._memory(buffer, aborts, file), aborts, self.chosen.copies(buffer)) for buffer in self.of
        }

    def _memory(
        self, buffer: WindowBuffer, here: Container[int], file: Callable[[int], tuple[int, int]]
    ) -> Mapping[int, Array]:
        found: dict[int, Array] = {}
        for rank, pieces in self.of[buffer].items():
            alike = [other for other in found if self.of[buffer][other] is pieces and rank not in here]
            found[rank] = found[alike[0]] if alike else mapped([(*file(p.rank), p) for p in pieces])
        return found


def mapped(pieces: Sequence[tuple[int, int, Piece]]) -> Array:
    """Return pieces of files one behind the other, and in front of them room of this mapping's own."""
    total = PAGE + sum(piece.size for *_, piece in pieces)
    start = map_pages(None, total, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    at = start + PAGE
    for descriptor, offset, piece in pieces:
        at = piece.size + map_pages(at, piece.size, mmap.MAP_SHARED | _FIXED, descriptor, offset + piece.offset)
    return held_pages(start, total)[PAGE - HEAD :]


@contextmanager
def made_file(size: int) -> Generator[int]:
    """Give the descriptor of a new file without a name, all of it zero; what is mapped of it stays."""
    descriptor = os.memfd_create("tilewright", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, size)
        yield descriptor
    finally:
        os.close(descriptor)
