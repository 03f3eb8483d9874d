"""The store: payloads kept between processes, by kind and key.

Looking up and keeping never fail: whatever is wrong with a directory or a file is a miss with a reason, and what could
not be kept will be made again. Nothing depends on a lock, on the clock, or on what another process does meanwhile.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import time

from tilewright import settings
from tilewright.errors import CacheWarning
from tilewright.keep.directory import Directory
from tilewright.keep.lock import LONGEST, locked
from tilewright.keep.miss import Miss
from tilewright.keep.payload import Label, encode, file_name
from tilewright.keep.shard import MAX_BYTES
from tilewright.keep.sweep import is_due, sweep
from tilewright.source import calling_line


class Store:
    """One directory to read and write, or none, and others that are only read."""

    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        shared: Sequence[str | os.PathLike[str]] = (),
        limit_bytes: int = 2 << 30,
        version: str = "",
    ) -> None:
        """`version` is that of the package, for people who look at entries."""
        self.directory = None if directory is None else Directory(directory)
        self.shared = tuple(Directory(each, shared=True) for each in shared)
        self.limit_bytes = limit_bytes
        self.version = version
        self.hits = 0
        self.misses = Counter[Miss]()
        self._warnings = [CacheWarning]

    @property
    def is_on(self) -> bool:
        """Whether anything can be found: the settings may ask for no store at all."""
        return self.directory is not None or bool(self.shared)

    def get(self, kind: str, digest: bytes) -> bytes | None:
        """Return what was kept under a key, or None; `misses` counts why."""
        name, why = file_name(kind, digest), Miss.ABSENT
        for directory in (self.directory, *self.shared):
            found = directory.fetch(name, touch=not directory.shared) if directory else Miss.ABSENT
            if not isinstance(found, Miss):
                self.hits += 1
                return found.payload
            why = why if found is Miss.ABSENT else found
        self.misses[why] += 1
        return None

    def put(self, kind: str, digest: bytes, payload: bytes, name: str = "") -> bool:
        """Keep a payload and return whether that worked; the first time it does not, a CacheWarning says why.

        An entry that was there is replaced. One that is larger than all entries together may be is not kept.
        """
        file = file_name(kind, digest)
        data = encode(Label(kind, digest, name, self.version, max(0, int(time()))), payload)
        if self.directory is None or len(data) > min(self.limit_bytes, MAX_BYTES):
            return False
        try:
            self.directory.publish(file, data)
        except OSError as error:
            self._warn(self.directory, error)
            return False
        if is_due(len(data), self.limit_bytes):
            sweep(self.directory, self.limit_bytes)
        return True

    def made(self, kind: str, digest: bytes, make: Callable[[], bytes]) -> bytes:
        """Return what was kept under a key, made now and kept where nothing was."""
        found = self.get(kind, digest)
        if found is None:
            found = make()
            self.put(kind, digest, found, kind)
        return found

    def lock(self, digest: bytes, timeout: float = LONGEST) -> AbstractContextManager[bool]:
        """Return a context in which others wait before they make the same; it gives whether they do.

        Whoever had to wait looks the entry up again inside. After `timeout` seconds, 30 at most, it goes on without.
        """
        return nullcontext(False) if self.directory is None else locked(self.directory.path, digest, timeout)

    def _warn(self, directory: Directory, error: OSError) -> None:
        try:
            category = self._warnings.pop()  # in one step, so that one of several threads warns
        except IndexError:
            return
        span = calling_line()
        help = "set TILEWRIGHT_CACHE_DIR to a directory that you can write to, or to `off`"
        message = f"compiled code is not kept in {directory.path}: {error.strerror}\n    help: {help}"
        warnings.warn_explicit(message, category, span.filename, span.line)


def configured(version: str = "") -> Store:
    """Return the store that the settings ask for, always the same one while they stay; ValueError for bad ones."""
    directory, shared = settings.cache_dir(), settings.shared_cache_dirs()
    if os.open not in os.supports_dir_fd:  # Windows, where nothing here would keep links out
        directory, shared = None, ()
    return _store(directory, shared, settings.cache_limit(), version)


_store = functools.cache(Store)
