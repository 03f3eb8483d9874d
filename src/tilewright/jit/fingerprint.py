"""Fingerprints: which compiler made a program, by its content."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


@cache
def toolchain() -> bytes:
    """Return a digest of this package's own sources and of the LLVM it uses; any change of either changes it."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(_part(path.relative_to(PACKAGE).as_posix().encode()))
        found.update(_part(path.read_bytes()))
    for fact in _llvm():
        found.update(_part(fact))
    return found.digest()


def python() -> str:
    """Return the version of Python, whose compiler a function's code comes from."""
    return sys.version


def _llvm() -> list[bytes]:
    """Return what is known of llvmlite without importing it: its version's text, and its library's size."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        return [b"none"]
    root = Path(spec.submodule_search_locations[0])
    version = root / "_version.py"
    libraries = sorted((root / "binding").glob("libllvmlite*"))
    return [version.read_bytes() if version.exists() else b"", *(str(p.stat().st_size).encode() for p in libraries)]


def _part(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data
