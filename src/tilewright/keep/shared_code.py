"""Shared code: machine code that is the same for all programs, kept between processes as they are."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.keep.digest import digest
from tilewright.keep.fingerprint import toolchain
from tilewright.keep.store import configured
from tilewright.native.target import llvm_files


def kept(kind: str, make: Callable[[], bytes]) -> bytes:
    """Return object code that LLVM makes of this package's own text: from the cache where it is there."""
    return _kept(kind, make, "", "")


def kept_region(text: str, make: Callable[[], bytes]) -> bytes:
    """Return the object code of a text that runs beside programs: how it is made, `native` says alone."""
    return _kept("region", make, text, "native")


def _kept(kind: str, make: Callable[[], bytes], text: str, part: str) -> bytes:
    store = configured()
    if not store.is_on:
        return make()
    return store.made(kind, digest(kind, text, toolchain(*llvm_files(), part=part)), make)
