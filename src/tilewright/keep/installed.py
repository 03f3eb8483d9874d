"""Installed files: what an installer noted of the files that it wrote, for those that it wrote last."""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode
from glob import escape, glob

MOMENT, WHILE = 2 * 10**9, 600 * 10**9
"""Within how many nanoseconds a note is written, and all files of a package together with it."""


def noted_sha256(path: str) -> bytes | None:
    """Return the SHA-256 of a file's content as the `RECORD` of its package has it, None where that may not hold.

    It holds for a file of the noted size that was last touched while its package was installed here, and a note that
    has lain as it is since then. Times of content can be set and come along with copies; those of an entry's own last
    change cannot. So the files of an image, an archive, a patched package or another system's store are read instead,
    as are those that somebody linked, moved or changed afterwards, even to the same size and time.
    """
    try:
        records = _records(path)
        if len(records) != 1 or os.name != "posix":  # elsewhere the time of a change is not known
            return None
        ((root, record),) = records
        status, note = os.stat(path), os.stat(record)
        in_place = abs(note.st_ctime_ns - note.st_mtime_ns) <= MOMENT
        together = 0 < note.st_ctime_ns - status.st_ctime_ns <= WHILE and status.st_mtime_ns <= note.st_ctime_ns
        return _noted(record, os.path.relpath(path, root), status.st_size) if in_place and together else None
    except (OSError, ValueError):
        return None


def _records(path: str) -> list[tuple[str, str]]:
    """Return the notes about the package that a file is part of, each with the folder that it counts from."""
    found: list[tuple[str, str]] = []
    package = os.path.dirname(path)
    while (root := os.path.dirname(package)) != package:
        name = os.path.basename(package)
        found += [(root, record) for record in glob(f"{escape(root)}/{escape(name)}-*.dist-info/RECORD")]
        package = root
    return found


def _noted(record: str, name: str, size: int) -> bytes | None:
    """Return the digest in the line of a note that names a file and its size; ValueError unless there is one line."""
    with open(record, encoding="utf-8") as file:
        lines = [line.rstrip("\n").rpartition(name + ",") for line in file]
    (noted,) = [rest for before, found, rest in lines if found and not before]
    kind, _, rest = noted.partition("=")
    digest, _, noted_size = rest.rpartition(",")
    if kind != "sha256" or int(noted_size) != size:
        return None
    found = urlsafe_b64decode(digest + "=" * (-len(digest) % 4))
    return found if len(found) == 32 else None
