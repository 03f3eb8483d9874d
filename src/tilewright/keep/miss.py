"""Misses: why a lookup found nothing."""

from __future__ import annotations

import errno
from enum import Enum


class Miss(Enum):
    """What kept an entry from being used, in words that follow `path: `."""

    ABSENT = "there is no such file"
    LINK = "it is a link or lies behind one, and links are not followed"
    NOT_A_FILE = "it is no regular file"
    OWNER = "it belongs to somebody else"
    WRITABLE = "others may write to it"
    TOO_LARGE = "it is larger than any entry"
    UNREADABLE = "it cannot be read"
    MAGIC = "it does not start like an entry"
    FORMAT = "it has another format"
    LENGTH = "it is cut off, or longer than it says"
    CHECKSUM = "its checksum does not match"
    LABEL = "its label is malformed"
    KEY = "it lies under another entry's name"


_REASONS = {errno.ENOENT: Miss.ABSENT, errno.ELOOP: Miss.LINK, errno.ENOTDIR: Miss.LINK, errno.ENXIO: Miss.NOT_A_FILE}
"""ENOTDIR is what a link in a folder's place gives, ENXIO a socket."""


def reason(error: OSError) -> Miss:
    """Return the miss that an error of the file system stands for."""
    return _REASONS.get(error.errno or 0, Miss.UNREADABLE)
