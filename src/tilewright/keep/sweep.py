"""Sweeping: what keeps a directory small.

Nobody keeps count of a directory that many processes write to. Instead every write looks through it with a chance that
grows with the write's size: on average once per sixteenth of the limit, which is how far the limit may be overrun, and
once per 1,024 writes, for what dead processes left. That takes no state, and costs nearly every write nothing.
"""

from __future__ import annotations

import os
from time import time

from tilewright.keep.directory import Directory, File
from tilewright.keep.shard import HOUR

PARTS = 16
WRITES = 1024
KEPT = 0.9
"""The part of the limit that is left full, so that the next write does not sweep again."""


def is_due(size: int, limit: int) -> bool:
    """Return whether the writer of `size` bytes is the one to sweep."""
    return int.from_bytes(os.urandom(4), "little") / 2**32 < PARTS * size / max(limit, 1) + 1 / WRITES


def sweep(directory: Directory, limit: int) -> None:
    """Remove what dead writers left and, above `limit` bytes, the entries that were not used for longest."""
    now = time()
    entries: list[File] = []
    for file in (file for file in directory.files() if file.is_ours):
        if not file.is_temporary:
            entries.append(file)
        elif not is_fresh(file, now):
            directory.remove(file)
    size = sum(file.status.st_size for file in entries)
    if size > limit:
        _evict(directory, sorted(entries, key=lambda file: min(file.status.st_mtime, now)), size - int(KEPT * limit))


def is_fresh(file: File, now: float) -> bool:
    """Return whether somebody may still be writing a file; the clock may have been set back by a day since."""
    return -24 * HOUR < now - file.status.st_mtime < HOUR


def _evict(directory: Directory, entries: list[File], excess: int) -> None:
    for file in entries:
        if excess <= 0:
            return
        directory.remove(file)
        excess -= file.status.st_size  # gone either way: if not by us, another process sweeps at the same time
