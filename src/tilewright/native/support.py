"""Support: the machine code that runs beside every program's own, chunks on threads and looks for signals.

It is the same for all programs. LLVM makes it once in a process; code that was kept brings its own along.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tilewright.digests import sha256
from tilewright.native.batches import BATCH
from tilewright.native.interrupts import LOOK
from tilewright.native.regions import POOL, SERIAL, TEAM
from tilewright.native.threads import Emit, emitted

REGIONS = (SERIAL, SERIAL + TEAM, SERIAL + POOL, LOOK, BATCH)
"""What `threads`, `interrupts` and batches of entries may ask for while a program runs."""


@cache
def made(text: str) -> bytes:
    """Return the object code of one of the regions."""
    return emitted(text)


def objects(kept: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return all of it, each object by a digest of its text; what was kept is not made again."""
    return {_digest(text): carried(kept)(text) for text in REGIONS}


def carried(kept: Mapping[str, bytes]) -> Emit:
    """Return a function that gives the objects that were kept, and has LLVM make others."""
    return lambda text: kept.get(_digest(text)) or made(text)


@cache
def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
