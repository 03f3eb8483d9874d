"""Support: the machine code that runs beside every program's own, chunks on threads and looks for signals.

It is the same for all programs. LLVM makes it once in a process, or once for all that share a cache; code that was kept
brings its own along.

The first program of a process waits for LLVM to be loaded, for its pages to come into memory and for this code, a fifth
of the time to its first result. Threads can do that while Python reads, lowers and emits the program: the first loads
the library, the second has it make a loop, which is as new to it as the program would be, and maps this code.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache

from tilewright import settings
from tilewright.digests import sha256
from tilewright.forks import Lock, undivided
from tilewright.native.assemble import make_ready
from tilewright.native.batches import BATCH
from tilewright.native.interrupts import LOOK, look_address
from tilewright.native.regions import POOL, SERIAL, TEAM
from tilewright.native.target import host, llvm_files
from tilewright.native.threads import Emit, emitted, parallel_address

REGIONS = (SERIAL, SERIAL + TEAM, SERIAL + POOL, LOOK, BATCH)
"""What `threads`, `interrupts` and batches of entries may ask for while a program runs."""


Keep = Callable[[str, Callable[[], bytes]], bytes]
"""Returns what was kept for a text, or what is made now."""

_objects: dict[str, bytes] = {}
_lock = Lock()
_keepers: list[Keep] = [lambda text, make: make()]


def keep_with(keep: Keep) -> None:
    """Have the regions of this process kept for others."""
    _keepers.append(keep)


def made(text: str) -> bytes:
    """Return the object code of one of the regions; of several threads that want it, one makes it."""
    with _lock:
        if text not in _objects:
            _objects[text] = _keepers[-1](text, lambda: emitted(text))
        return _objects[text]


@cache
def begin() -> None:
    """Have a thread load LLVM's library, when something will be compiled for certain; whoever needs it waits for it.

    It imports nothing. An interrupt that comes while two threads import can leave Python's import lock held for good,
    and would leave every later call waiting for a thread that waits for the lock.
    """
    library = next((file for file in llvm_files() if "libllvmlite" in os.path.basename(file)), None)
    made_ready = _profilers()
    if library is not None:
        _beside(lambda: (made_ready(), ctypes.CDLL(library)))


@cache
def begin_code() -> None:
    """Load LLVM, and have a thread make what the first program will ask for besides its own code, LLVM ready first."""
    target = host()
    _beside(lambda: (make_ready(target), parallel_address(settings.num_threads(), made), look_address(made)))


def _beside(work: Callable[[], object]) -> None:
    """Do something in a thread, where there are processors for it."""

    def run() -> None:
        with undivided(), suppress(Exception):  # whoever needs it meets the same error, where somebody looks
            work()

    if settings.num_threads() > 1:
        with suppress(RuntimeError):  # no thread can be started: whoever needs it does the work
            threading.Thread(target=run, name="tilewright-llvm").start()


def _profilers() -> Callable[[], None]:
    """Return what makes the files of profilers, where settings ask for some."""
    if not settings.perf():
        return lambda: None
    from tilewright.native import profilers  # which only profiled processes need

    return profilers.begin


def objects(kept: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return all of it, each object by a digest of its text; what was kept is not made again."""
    return {_digest(text): carried(kept)(text) for text in REGIONS}


def carried(kept: Mapping[str, bytes]) -> Emit:
    """Return a function that gives the objects that were kept, and has LLVM make others."""
    return lambda text: kept.get(_digest(text)) or made(text)


@cache
def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
