"""Variants: the programs that one kernel has been compiled to, found by its arguments.

A dynamic axis is one that a program takes as it comes. Which axes those are is known once the kernel has been
specialized, since any helper may name one; so programs are grouped by their dynamic axes, and a lookup leaves those
extents out. There is one such group for nearly every kernel. The same arguments may have several programs, compiled
from different values of what the kernel reads from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Generic, TypeVar

from tilewright.named_tuples import NamedTuple
from tilewright.records import mutable

T = TypeVar("T")

Extents = tuple[int | None, ...]
"""The extents of all tensor arguments, one after the other; None for one that a signature leaves open."""


class CacheInfo(NamedTuple):
    """What a kernel's cache has done so far."""

    hits: int
    misses: int
    compiles: int
    currsize: int


@mutable
class Variants(Generic[T]):
    """The programs for arguments of the same kinds: for each set of dynamic axes, by the other extents."""

    groups: dict[frozenset[int], dict[Extents, list[T]]] = field(
        default_factory=dict[frozenset[int], "dict[Extents, list[T]]"]
    )

    def find(self, extents: Extents) -> Iterator[T]:
        """Yield the programs for some extents."""
        for dynamic, programs in list(self.groups.items()):  # another thread may add to what is looked through
            yield from programs.get(_static(extents, dynamic), ())

    def extents(self) -> Iterator[Extents]:
        """Yield the extents that programs were made for, None for those they take as they come."""
        for dynamic, programs in list(self.groups.items()):
            for static in list(programs):
                left = iter(static)
                total = len(static) + len(dynamic)
                yield tuple(None if place in dynamic else next(left) for place in range(total))

    def add(self, dynamic: frozenset[int], extents: Extents, program: T) -> None:
        """Keep a program that takes the axes in `dynamic` as they come."""
        self.groups.setdefault(dynamic, {}).setdefault(_static(extents, dynamic), []).append(program)


def _static(extents: Extents, dynamic: frozenset[int]) -> Extents:
    return tuple(e for i, e in enumerate(extents) if i not in dynamic) if dynamic else extents


@mutable
class Store(Generic[T]):
    """All the programs of one kernel."""

    variants: dict[object, Variants[T]] = field(default_factory=dict[object, Variants[T]])
    hits: int = 0
    misses: int = 0
    compiles: int = 0

    def find(self, kinds: object, extents: Extents) -> list[T]:
        """Return the programs for arguments."""
        variants = self.variants.get(kinds)
        return list(variants.find(extents)) if variants is not None else []

    def add(self, kinds: object, dynamic: Sequence[int], extents: Extents, program: T) -> None:
        """Keep a program."""
        self.variants.setdefault(kinds, Variants()).add(frozenset(dynamic), extents, program)

    def programs(self) -> Iterator[T]:
        """Yield every program."""
        for variants in list(self.variants.values()):
            for group in list(variants.groups.values()):
                for programs in list(group.values()):
                    yield from programs

    def info(self) -> CacheInfo:
        """Return what the cache has done."""
        return CacheInfo(self.hits, self.misses, self.compiles, sum(1 for _ in self.programs()))
