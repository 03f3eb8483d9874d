"""Groups: which pointers of a launch reach into the same memory.

Pointers that overlap share one buffer of bytes, in which each has its offset. Of a bare address nobody knows how far it
reaches, so one of those puts all pointers into a single buffer that goes on to the end of the address space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tilewright.named_tuples import NamedTuple

UNKNOWN = -1
"""The extent of memory behind a bare address."""

END = 1 << 47
"""Where the addresses of a process end."""


class Reach(NamedTuple):
    """The memory behind one pointer: its first byte, its bytes or UNKNOWN, and the bytes of an element."""

    address: int
    nbytes: int
    itemsize: int

    @property
    def end(self) -> int:
        """The byte after the last."""
        return self.address + self.nbytes


@dataclass(frozen=True, slots=True)
class Groups:
    """The buffers of a launch, and the piece of one that each pointer may reach."""

    shared: tuple[int, ...]
    """The group of each pointer; groups are numbered in the order of their first pointers."""
    buffers: tuple[tuple[int, int], ...]
    """The address and the bytes of each group."""
    pieces: tuple[tuple[int, int], ...]
    """Where in its buffer each pointer points, and how many bytes it may reach from there."""

    @property
    def words(self) -> tuple[int, ...]:
        """Address, bytes and stride of each buffer."""
        return tuple(word for address, nbytes in self.buffers for word in (address, nbytes, 1))


def grouped(pointers: Sequence[Reach]) -> Groups | None:
    """Return how pointers share memory, None where each has its own and lies where its elements may lie."""
    if any(pointer.nbytes == UNKNOWN for pointer in pointers):
        return _all_together(pointers)
    leaders = _leaders(pointers)
    if len(set(leaders)) == len(pointers) and not any(p.address % p.itemsize for p in pointers):
        return None
    numbers = {leader: number for number, leader in enumerate(dict.fromkeys(leaders))}
    shared = tuple(numbers[leader] for leader in leaders)
    members = [[p for p, group in zip(pointers, shared, strict=True) if group == n] for n in range(len(numbers))]
    starts = [min(p.address for p in group) for group in members]
    buffers = tuple((start, max(p.end for p in group) - start) for start, group in zip(starts, members, strict=True))
    pieces = tuple((p.address - starts[group], p.nbytes) for p, group in zip(pointers, shared, strict=True))
    return Groups(shared, buffers, pieces)


def are_apart(pointers: Sequence[Reach], written: Sequence[bool]) -> bool:
    """Return whether all pointers lie where their elements may, and memory that one writes is no other's."""
    if any(pointer.nbytes == UNKNOWN or pointer.address % pointer.itemsize for pointer in pointers):
        return False
    every = list(zip(pointers, written, strict=True))
    pairs = [(a, b) for (a, first), (b, second) in combinations(every, 2) if first or second]
    return all(a.end <= b.address or b.end <= a.address or not a.nbytes or not b.nbytes for a, b in pairs)


def _leaders(pointers: Sequence[Reach]) -> list[int]:
    """Return for each pointer the position of one that stands for all it overlaps with, directly or through others."""
    leaders = list(range(len(pointers)))
    last, end = -1, -1
    for position in sorted(leaders, key=pointers.__getitem__):
        pointer = pointers[position]
        if pointer.nbytes == 0:
            continue
        if pointer.address < end:
            leaders[position] = last
        else:
            last = position
        end = max(end, pointer.end)
    return leaders


def _all_together(pointers: Sequence[Reach]) -> Groups:
    start = min(p.address for p in pointers if p.nbytes)
    places = [max(p.address - start, 0) for p in pointers]
    sizes = [
        END - start - place if p.nbytes == UNKNOWN else p.nbytes for p, place in zip(pointers, places, strict=True)
    ]
    return Groups((0,) * len(pointers), ((start, END - start),), tuple(zip(places, sizes, strict=True)))
