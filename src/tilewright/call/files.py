"""Files: whether a file is what it was when a program was made from it, as machine code can ask.

It calls the C library's `stat` and compares the words that tell a file's number, size and time of change. Where those
stand otherwise, or there is no such function, Python asks before each call.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from tilewright.call.guards import Guards
from tilewright.call.words import FILE_WORDS, STATUS_WORDS, Probe
from tilewright.records import record

NANOSECONDS = 1_000_000_000


@record
class UnchangedFile:
    """A file, known by when it was changed last, in nanoseconds, by its size and by its number."""

    path: str
    stamp: tuple[int, int, int] | None
    """None where it was changed so shortly before it was read that its time need not show the next change."""

    @property
    def is_same(self) -> bool:
        """Whether the file is still known by the same."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_mtime_ns, status.st_size, status.st_ino) == self.stamp

    @property
    def words(self) -> tuple[int, ...]:
        """What the words of its status are: its number, its size, and the seconds and nanoseconds of its change."""
        assert self.stamp is not None
        changed, size, number = self.stamp
        return number, size, *divmod(changed, NANOSECONDS)

    def guards(self) -> Guards | None:
        """Return what tells without Python whether the file has changed, None where that cannot be told or it has."""
        function = _stat()
        if function is None or self.stamp is None:
            return None
        path, room = os.fsencode(self.path), (ctypes.c_int64 * STATUS_WORDS)()
        if function(path, room) or tuple(room[at] for at in FILE_WORDS) != self.words:
            return None
        return Guards(probes=[(Probe.FILE, self, function, path)])


@cache
def _stat() -> Any:
    """Return the C library's `stat`, None where it has none."""
    try:
        function = ctypes.CDLL(None).stat
    except (AttributeError, OSError, TypeError):  # an older library, or another system
        return None
    function.argtypes, function.restype = (ctypes.c_char_p, ctypes.c_void_p), ctypes.c_int
    return function
