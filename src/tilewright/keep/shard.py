"""Shards: the folders that entries lie in, one for each first byte of a key.

Everything in a shard is reached from the open folder and without following links, so a link that somebody planted
leads nowhere. A file appears under its name complete or not at all: it is written under a name of its own and moved.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from time import time
from types import TracebackType

from tilewright.keep.miss import Miss

NAMES = frozenset(f"{byte:02x}" for byte in range(256))

TEMPORARY = ".tmp"
"""How the name of a file ends while it is written."""

MAX_BYTES = 1 << 28
"""The largest file that is read, so that damage cannot ask for all memory."""

HOUR = 3600


class Shard:
    """One open folder; OSError where there is none, or a link."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def __enter__(self) -> Shard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError):  # nothing was written through it
            os.close(self.fd)

    def read(self, name: str, owners: tuple[int, ...], most: int = MAX_BYTES, touch: bool = False) -> bytes | Miss:
        """Return the first `most` bytes of a file that one of `owners` alone can write; OSError where it is absent.

        With `touch` the file counts as used now, to the hour.
        """
        # Without O_NONBLOCK, a planted pipe would wait for somebody to write into it.
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.fd)
        try:
            status = os.fstat(fd)
            refused = _refusal(status, owners)
            if refused is not None:
                return refused
            if touch and not 0 <= time() - status.st_mtime < HOUR:  # a clock that was set back is put right as well
                with suppress(OSError):
                    os.utime(fd)
            return os.read(fd, min(status.st_size, most))
        finally:
            os.close(fd)

    def publish(self, name: str, data: bytes) -> None:
        """Let `name` hold `data`, in one step for whoever reads; OSError leaves everything as it was."""
        temporary = os.urandom(8).hex() + TEMPORARY
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=self.fd)
        try:
            _fill(fd, data)
            os.replace(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=self.fd)
            raise

    def statuses(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the name and status of everything in the folder; what a link is, not what it leads to."""
        with os.scandir(self.fd) as found:
            for each in found:
                with suppress(FileNotFoundError):  # removed since
                    yield each.name, each.stat(follow_symlinks=False)

    def remove(self, name: str, seen: os.stat_result) -> bool:
        """Remove a file of ours unless another has replaced what was `seen`; return whether it is gone."""
        with suppress(OSError):
            now = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            ours = stat.S_ISREG(now.st_mode) and now.st_uid == os.geteuid()
            if ours and (now.st_ino, now.st_mtime_ns, now.st_size) == (seen.st_ino, seen.st_mtime_ns, seen.st_size):
                os.unlink(name, dir_fd=self.fd)
                return True
        return False


def _refusal(status: os.stat_result, owners: tuple[int, ...]) -> Miss | None:
    """Return why a file is not to be trusted, or None."""
    if not stat.S_ISREG(status.st_mode):
        return Miss.NOT_A_FILE
    if status.st_uid not in owners:
        return Miss.OWNER
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return Miss.WRITABLE
    return Miss.TOO_LARGE if status.st_size > MAX_BYTES else None


def _fill(fd: int, data: bytes) -> None:
    """Write all of `data` and close the file, which is where some file systems say that they are full."""
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
    finally:
        os.close(fd)


def make_folder(path: str) -> None:
    """Make a folder for us alone, and those it lies in; OSError where that cannot be."""
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    except FileNotFoundError:
        make_folder(os.path.dirname(path))
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
