"""Threads: the work items of a SIMT launch, and which of them runs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tilewright.core.expr import Expr
from tilewright.ops.builder import known
from tilewright.pto.machine.machine import Machine, Place, Threads

MOST_THREADS = 2048
"""How many work items a launch may have."""
WARP = 32
"""How many work items vote, shuffle and add up together."""


def alone(m: Machine) -> Threads:
    """Return the one work item that runs outside every launch."""
    zero, one = m.b.index(0), m.b.index(1)
    return Threads((one, one, one), (zero, zero, zero), zero)


def numbered(m: Machine, extents: Place, number: Expr) -> Threads:
    """Return a work item by its number, which counts along x first."""
    x, y, z = extents
    if known(y) == 1 and known(z) == 1:
        return Threads(extents, (number, m.b.index(0), m.b.index(0)), number)
    row = m.b.scalar("floordiv", number, x)
    place = m.b.scalar("mod", number, x), m.b.scalar("mod", row, y), m.b.scalar("floordiv", row, y)
    return Threads(extents, place, number)


@contextmanager
def running(m: Machine, threads: Threads) -> Generator[None]:
    """Let what is written inside be what one work item does."""
    outer, m.simt.threads = m.simt.threads, threads
    try:
        yield
    finally:
        m.simt.threads = outer


@contextmanager
def each_of(m: Machine, extents: Place) -> Generator[None]:
    """Write loops over all work items around what is written inside, which one of them does."""
    with m.b.loop(0, extents[2], hint="z") as z, m.b.loop(0, extents[1], hint="y") as y:
        with m.b.loop(0, extents[0], hint="x") as x:
            number = m.b.add(x, m.b.mul(extents[0], m.b.add(y, m.b.mul(extents[1], z))))
            with running(m, Threads(extents, (x, y, z), number)):
                yield


def total(m: Machine, extents: Sequence[Expr]) -> Expr:
    """Return how many work items there are."""
    return m.b.mul(m.b.mul(extents[0], extents[1]), extents[2])
