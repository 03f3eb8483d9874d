"""Shared code: machine code that is the same for all programs, kept between processes as they are."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.keep.digest import digest
from tilewright.keep.fingerprint import toolchain
from tilewright.keep.store import configured
from tilewright.native.target import llvm_files


def kept(kind: str, make: Callable[[], bytes], *sources: str) -> bytes:
    """Return object code that LLVM makes of some text, or of this package's own: from the cache where it is there."""
    store = configured()
    if not store.is_on:
        return make()
    return store.made(kind, digest(kind, *sources, toolchain(*llvm_files())), make)


def kept_region(text: str, make: Callable[[], bytes]) -> bytes:
    """Return the object code of a text that runs beside programs."""
    return kept("region", make, text)
