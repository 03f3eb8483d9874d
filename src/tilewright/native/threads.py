"""Threads: the chunks of a kernel run side by side.

A kernel calls through a pointer `parallel(fn, data, chunks, context)`, which calls `fn(data, chunk)` for every chunk
and returns once all have run. Behind the pointer is a loop for one thread; a team of the OpenMP runtime that is mapped
already, mostly torch's, since its workers spin after each region and starve any others; or else a pool of workers of
our own. A second OpenMP runtime is never loaded: it would be a second set of workers.

A forked child has no workers. It starts a pool anew; OpenMP would hang, even where torch alone had used it, so what
used a team runs serially there, and what comes later gets a pool.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache

from tilewright import forks, settings
from tilewright.forks import Lock, after_fork
from tilewright.imported import imported
from tilewright.named_tuples import NamedTuple
from tilewright.native.assemble import SOON, assemble
from tilewright.native.loader import Loaded, load
from tilewright.native.machines import here
from tilewright.native.regions import POOL, SERIAL, TEAM
from tilewright.native.target import own_baseline

Emit = Callable[[str], bytes]
MAPS = "/proc/self/maps"
OPENMP = ("libgomp", "libiomp5", "libomp")
RESET = ("state", "busy", "sleepers", "started")  # what a fork leaves meaningless in a pool


class OpenMP(NamedTuple):
    """An OpenMP runtime of this process: where the functions lie that a team needs, and the one that tells its size."""

    GOMP_parallel: int
    omp_in_parallel: int
    omp_get_thread_num: int
    omp_get_max_threads: int


def emitted(text: str) -> bytes:
    """Return the object code of a region's text, which waits more than it computes; who keeps code passes their own."""
    return assemble(text, own_baseline(), SOON).object


def parallel_address(threads: int, emit: Emit = emitted) -> int:
    """Return the address of a C function `void (fn, data, chunks, context)` that runs chunks on so many threads.

    The address stays good for the life of the process; ask again after torch is imported, and its OpenMP is used.
    """
    if threads < 1:
        raise ValueError(f"kernels need at least one thread, got {threads}")
    machine = here()
    threads = threads if machine is None or machine.has_pool else 1
    runtime = _usable_openmp() if threads > 1 else None
    with _lock:
        key = (threads, runtime)
        if key not in _instances:
            _instances[key] = _load(threads, runtime, emit)
        return _instances[key].address("parallel" if threads > 1 else "serial")


def _load(threads: int, runtime: OpenMP | None, emit: Emit) -> Loaded:
    if threads == 1:
        return load(emit(_unwound(SERIAL))).pin()
    text = _unwound(SERIAL + (TEAM if runtime else POOL))
    loaded = load(emit(text), runtime._asdict() if runtime else {}).pin()
    ctypes.c_int64.from_address(loaded.address("threads")).value = threads
    return loaded


def _unwound(text: str) -> str:
    """Return a region's text; where a debugger looks on, one through which it finds the caller."""
    return text.replace(" nounwind {", " nounwind uwtable {") if "gdb" in settings.perf() else text


_instances: dict[tuple[int, OpenMP | None], Loaded] = {}
_lock = Lock()


@cache
def openmp(torch_is_imported: bool) -> OpenMP | None:
    """Return the OpenMP runtime that is mapped already, torch's before others; asked again once torch is there."""
    try:
        with open(MAPS, encoding="utf-8", errors="surrogateescape") as file:
            paths = {line.rstrip("\n").split(maxsplit=5)[5] for line in file if "omp" in line}
    except OSError:
        return None
    found = [path for path in paths if os.path.basename(path).startswith(OPENMP)]
    for path in sorted(found, key=lambda path: ("torch" not in path, path)):
        try:
            library = ctypes.CDLL(path)
            return OpenMP(*(ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in OpenMP._fields))
        except (OSError, AttributeError):
            continue
    return None


def _usable_openmp() -> OpenMP | None:
    """Return the OpenMP runtime to make teams with: in a forked child none that the parent may have used."""
    has_torch = imported("torch") is not None
    return None if forks.had("torch") == has_torch else openmp(has_torch)


def _forget_workers() -> None:
    """Tell pools and teams that this is a forked child, where their workers are not."""
    for (threads, runtime), loaded in _instances.items():
        if runtime:
            ctypes.c_int64.from_address(loaded.address("threads")).value = 1
        elif threads > 1:
            for word in RESET:
                ctypes.c_int64.from_address(loaded.address(word)).value = 0


after_fork(_forget_workers)
