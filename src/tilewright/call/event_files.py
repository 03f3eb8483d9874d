"""Event files: lists of events that are whole whenever they are looked at, and that several processes write.

More events are written over the end of the list. Where the disk is full, the file is left as it was before.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager

from tilewright.errors import TilewrightError


class TraceError(TilewrightError, ValueError):
    """A timeline that cannot be written where a configuration says."""


END = b"\n]\n"


class EventFile:
    """A list of events in a file, which begins with one of them."""

    def __init__(self, path: str, first: str) -> None:
        self.path = path
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(b"[\n" + first.encode() + END)
        except OSError as error:
            help = "`RunConfig(trace=...)` takes a file in a folder of your own"
            raise TraceError(f"no timeline can be written to {path}: {error.strerror}\n    help: {help}") from None

    def append(self, text: str) -> None:
        """Add events, each behind a comma; the first time that does not work, a RuntimeWarning says why.

        A file that somebody has removed stays away.
        """
        try:
            with open(self.path, "r+b", buffering=0) as file, _alone(file.fileno()):
                end = file.seek(-len(END), os.SEEK_END)
                try:
                    _write(file.fileno(), text.encode() + END)
                except OSError:
                    file.truncate(end)
                    file.seek(end)
                    _write(file.fileno(), END)
                    raise
        except FileNotFoundError:
            return
        except OSError as error:
            warnings.warn(f"calls are missing in {self.path}: {error.strerror}", RuntimeWarning, stacklevel=2)


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


@contextmanager
def _alone(file: int) -> Generator[None]:
    """Keep other processes from a file; whoever closes it lets them in again."""
    if sys.platform != "win32":
        from fcntl import LOCK_EX, flock

        flock(file, LOCK_EX)
    yield
