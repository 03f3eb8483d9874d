"""Fingerprints: which compiler made a program, by its content."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from marshal import dumps
from typing import TypeAlias

from tilewright.digests import sha256
from tilewright.keep.store import configured

PACKAGE = os.path.dirname(os.path.dirname(__file__))
LIBRARY, SOURCES = "library", "sources"
"""What digests are kept as."""

Facts: TypeAlias = tuple[str, int, int, int, int]
"""A file's path, and what changes with its content: its size, two times in nanoseconds, the number of its place."""


@cache
def toolchain(*files: str, part: str = "") -> bytes:
    """Return a digest of this package's own sources and of the compiler's files; any change of either changes it.

    Where a `part` of the package is all that matters, a folder of it, its sources are: there are a thousand in all. A
    process whose sources were edited after it started runs neither the old nor the new ones for certain: its digest is
    its own.
    """
    sources = _sources(os.path.join(PACKAGE, part))
    found = sha256(_remembered(SOURCES, sources, lambda: _content(sources)))
    for path in files:
        found.update(_part(library_digest(path)))
    if max(facts[2] for facts in sources) > _started() * 1e9:
        found.update(os.urandom(32))
    return found.digest()


def _sources(root: str) -> list[Facts]:
    """Return what the system knows about every source in a folder."""
    found: list[Facts] = []
    folders = [root]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found.append(_facts(entry.path, entry.stat()))
                elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return sorted(found)


def _content(sources: Sequence[Facts]) -> bytes:
    """Return the digest of what sources are called and say, wherever the package lies."""
    found = sha256()
    for path, *_ in sources:
        found.update(_part(path[len(PACKAGE) :].encode()))
        found.update(_part(_read(path)))
    return found.digest()


def python() -> str:
    """Return the version of Python, whose compiler a function's code comes from."""
    return sys.version


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def library_digest(path: str | os.PathLike[str]) -> bytes:
    """Return the digest of a large file's content, remembered in the cache for as long as the file stays the same."""

    def read() -> bytes:
        from hashlib import sha256  # that of OpenSSL, which is quicker where there is much to read

        from tilewright.keep.installed import noted_sha256  # which takes 1 ms, and reading LLVM 250

        if (noted := noted_sha256(os.fspath(path))) is not None:
            return noted
        found = sha256()
        with open(path, "rb") as file:
            while data := file.read(1 << 20):
                found.update(data)
        return found.digest()

    return _remembered(LIBRARY, [_facts(os.fspath(path), os.stat(path))], read)


def _facts(path: str, status: os.stat_result) -> Facts:
    return path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _remembered(kind: str, files: list[Facts], read: Callable[[], bytes]) -> bytes:
    """Return a digest of what some files hold, from the cache where they are the files that it was made of."""
    return configured().made(kind, sha256(dumps(files, 2)).digest(), read)  # a version without references


def _started() -> float:
    """Return when this process started, in seconds since 1970; the end of time where the system does not say."""
    try:
        ticks = int(_read("/proc/self/stat").rpartition(b")")[2].split()[19])
        boot = next(float(line[5:]) for line in _read("/proc/stat").splitlines() if line.startswith(b"btime"))
        return boot + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, LookupError, StopIteration):
        return float("inf")


def _part(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data
