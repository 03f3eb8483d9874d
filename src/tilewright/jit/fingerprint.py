"""Fingerprints: which compiler made a program, by its content."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from typing import BinaryIO

from tilewright.cache.store import configured

PACKAGE = Path(__file__).parents[1]
LIBRARY = "library"


@cache
def toolchain() -> bytes:
    """Return a digest of this package's own sources and of the LLVM it uses; any change of either changes it.

    A process whose sources were edited after it started runs neither the old nor the new ones for certain: its digest
    is its own.
    """
    found = hashlib.sha256()
    sources = sorted(PACKAGE.rglob("*.py"))
    for path in sources:
        found.update(_part(path.relative_to(PACKAGE).as_posix().encode()))
        found.update(_part(path.read_bytes()))
    for fact in _llvm():
        found.update(_part(fact))
    if max(path.stat().st_mtime for path in sources) > _started():
        found.update(os.urandom(32))
    return found.digest()


def python() -> str:
    """Return the version of Python, whose compiler a function's code comes from."""
    return sys.version


def _llvm() -> list[bytes]:
    """Return what llvmlite is, without importing it: its version's text, and digests of its libraries."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        return [b"none"]
    root = Path(spec.submodule_search_locations[0])
    version = root / "_version.py"
    libraries = sorted((root / "binding").glob("libllvmlite*"))
    return [version.read_bytes() if version.exists() else b"", *map(library_digest, libraries)]


def library_digest(path: Path) -> bytes:
    """Return the digest of a large file's content, remembered in the cache for as long as the file stays the same."""
    status = path.stat()
    facts = (str(path), status.st_size, status.st_mtime_ns, status.st_ino)
    key = hashlib.sha256("\0".join(map(str, facts)).encode()).digest()
    kept = configured()
    known = kept.get(LIBRARY, key)
    if known is None:
        with path.open("rb") as file:
            known = _digest_of(file)
        kept.put(LIBRARY, key, known, path.name)
    return known


def _digest_of(file: BinaryIO) -> bytes:
    found = hashlib.sha256()
    while data := file.read(1 << 20):
        found.update(data)
    return found.digest()


def _started() -> float:
    """Return when this process started, in seconds since 1970; the end of time where the system does not say."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        lines = Path("/proc/stat").read_text().splitlines()
        boot = next(float(line.split()[1]) for line in lines if line.startswith("btime"))
        return boot + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, LookupError, StopIteration):
        return float("inf")


def _part(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data
