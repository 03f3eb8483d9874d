"""Locks: one process makes what several want, and the others wait a while for it.

A lock saves work and nothing else. Whoever waits too long, because the holder was stopped or works for long, goes on
without it; so does everybody where the directory cannot be written. A lock's file stays, since removing one that
somebody waits for would split the waiters; two bytes of the key name it, so there are 65,536 of them at most.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from time import monotonic, sleep

from tilewright.keep.shard import Shard, make_folder

LONGEST = 30.0
"""Seconds that anybody waits."""


@contextmanager
def locked(directory: str, digest: bytes, timeout: float) -> Generator[bool, None, None]:
    """Hold the lock of a key inside, against other threads too; give whether it is held, within `timeout` seconds."""
    fd = _opened(f"{directory}/locks", digest[:2].hex())
    if fd is None:
        yield False
        return
    process = os.getpid()
    try:
        yield _taken(fd, monotonic() + min(timeout, LONGEST))
    finally:
        if os.getpid() == process:  # a forked child shares the lock, and would give up its parent's
            _released(fd)
        with suppress(OSError):
            os.close(fd)


def _opened(folder: str, name: str) -> int | None:
    """Return a descriptor of a lock's file, or None where there cannot be one."""
    with suppress(OSError):
        make_folder(folder)
        with Shard(folder) as shard:
            return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=shard.fd)
    return None


def _taken(fd: int, deadline: float) -> bool:
    """Return whether the lock could be had before `deadline`."""
    import fcntl  # which Windows lacks

    pause = 0.001
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left = deadline - monotonic()
            if not left > 0:  # as for nan
                return False
            sleep(min(pause, left))
            pause = min(2 * pause, 0.05)
        except OSError:  # a file system without locks
            return False
        else:
            return True


def _released(fd: int) -> None:
    """Give up the lock, also where a child that was forked meanwhile has the file open."""
    import fcntl

    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
