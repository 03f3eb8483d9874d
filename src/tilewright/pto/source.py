"""Sources: where the text of a kernel comes from, and what it was when it was read.

A file is read at every compilation. A launch asks only whether it is the same file by its time of change, size and
number, and reads it where it is not, or where it was changed so shortly before it was read that its time need not show
another change: whoever sets the times of files themselves calls `compile`.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tilewright.digests import sha256
from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoSourceNotFoundError
from tilewright.pto.module import Module

Stamp: TypeAlias = tuple[int, int, int]
"""When a file was changed last, its size and its number: what a launch knows it by."""

SETTLED_NS = 100_000_000
"""How old a file's time must be for later changes to show in it: file systems count in ticks of some milliseconds."""

_OPENS_A_MODULE = re.compile(r"\s*(builtin\.)?module\s*(@[\w.$-]+\s*)?(attributes\s*\{|\{)|\s*func\.func\s")


def refuse_text(text: str) -> None:
    """Raise what is wrong with the text of a module."""
    from tilewright.pto.text.parser import parse
    from tilewright.pto.verify import verify

    verify(parse(text))


def takes(op: str, read: str, written: str) -> bool:
    """Return whether an op on tiles reads such elements first and writes such others, on A5.

    Behind the name of `mscatter` may stand how it combines them with what is there.
    """
    from tilewright.pto.elements import is_on_a5
    from tilewright.pto.operand_laws import COMBINED

    name, _, way = op.partition(" ")
    return is_on_a5(name, read, written) and (not way or read.removeprefix("u") in COMBINED[way])


@dataclass(frozen=True, slots=True)
class Text:
    """PTO text as it was read."""

    text: str
    path: Path | None
    stamp: Stamp | None = None
    """What the file was known by, None where that may not show the next change."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the text, in hexadecimal."""
        return sha256(self.text.encode(errors="surrogatepass")).hexdigest()

    @property
    def label(self) -> str:
        """What messages call the text: its path, or the start of its digest."""
        return str(self.path) if self.path is not None else f"<pto {self.digest[:12]}>"

    def module(self) -> Module:
        """Return the module that it says; ParserError shows where it says none."""
        from tilewright.pto.text.parser import parse

        return parse(self.text, self.label)


def parse(source: str | os.PathLike[str]) -> Module:
    """Return the module that PTO text, or the file at a path, says; ParserError shows where it says none.

    A string is taken for text where it has several lines or opens a module; relative paths start where the process is.
    """
    given: Any = source
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"pto.parse takes PTO text or a path, got {type(given).__name__}")
    if isinstance(source, str):
        return Origin.of(source, Path.cwd()).read().module()
    path = Path(source)
    return Origin(str(path), path.resolve()).read().module()


def is_text(source: str) -> bool:
    """Return whether `source` is PTO text rather than the path of a file of it.

    Text has several lines, or opens a module or a function, or holds both somewhere.
    """
    if "\n" in source or "\r" in source or _OPENS_A_MODULE.match(source):
        return True
    return "module {" in source and "func.func @" in source


@dataclass(frozen=True, slots=True)
class Origin:
    """What `source=` says: text itself, or a file."""

    given: str
    path: Path | None

    @staticmethod
    def of(source: str, directory: Path) -> Origin:
        """Return where text comes from; relative paths start from `directory`."""
        return Origin(source, None if is_text(source) else _resolved(directory / source))

    def stamp(self) -> Stamp | None:
        """Return what the file is known by now, None for text and for a file that is not there."""
        if self.path is None:
            return None
        try:
            return _stamp(os.stat(self.path))
        except OSError:
            return None

    def read(self, declared: Declared | None = None) -> Text:
        """Return the text as it is now; PtoSourceNotFoundError where it cannot be read."""
        if self.path is None:
            return Text(self.given, None)
        try:
            with open(self.path, "rb") as file:
                stamp = _stamp(os.fstat(file.fileno()))
                is_settled = time.time_ns() - stamp[0] > SETTLED_NS
                return Text(file.read().decode(), self.path, stamp if is_settled else None)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            reason = f"not UTF-8: {error}" if isinstance(error, UnicodeDecodeError) else reason
            message = f"PTO source {self.given!r}, which is {self.path}, cannot be read: {reason}"
            if declared is None:
                raise PtoSourceNotFoundError(message, help=_FROM_HERE) from error
            raise declared.refusal(PtoSourceNotFoundError, message) from error


_FROM_HERE = "relative paths start from where the process is"


def _resolved(path: Path) -> Path:
    """Return a path without links and dots; one that no file can have, or that links to itself, stays as it is."""
    try:
        return path.resolve()
    except (ValueError, RuntimeError):
        return path


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino
