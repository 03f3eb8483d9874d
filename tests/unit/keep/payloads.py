"""Keys and payloads that tell whose they are, for the tests of the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from tilewright.keep.payload import file_name

KIND = "artifact"


def key(number: int) -> bytes:
    return sha256(str(number).encode()).digest()


def payload(digest: bytes, variant: int = 0, size: int = 3000) -> bytes:
    """Return bytes that belong to one key and no other."""
    return (digest + variant.to_bytes(2, "little")) * (size // 34)


def belongs(found: bytes, digest: bytes) -> bool:
    """Return whether `found` is a whole payload of a key, in any variant."""
    return found == payload(digest, int.from_bytes(found[32:34], "little"), len(found))


def path_of(directory: Path, digest: bytes, kind: str = KIND) -> Path:
    """Return where an entry's file lies."""
    name = file_name(kind, digest)
    return directory / name[:2] / name


def temporaries(directory: Path) -> list[Path]:
    return sorted(directory.glob("*/*.tmp"))


def age(path: Path, seconds: float) -> None:
    """Let a file be last used some time ago."""
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def everything(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield every file below a directory and its first bytes."""
    for each in sorted(directory.rglob("*")):
        if each.is_file() and not each.is_symlink():
            with each.open("rb") as file:
                yield each, file.read(100_000)
