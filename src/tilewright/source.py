"""Spans: where in the author's own text a thing was written."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TypedDict

from tilewright.named_tuples import NamedTuple


class Source:
    """The text of one file or string, as it was when the kernel was captured."""

    __slots__ = ("filename", "lines")

    def __init__(self, filename: str, lines: tuple[str, ...]) -> None:
        self.filename = filename
        self.lines = lines

    def line(self, number: int) -> str | None:
        """Return line `number` (from 1) without its line end, or None past the text."""
        if 1 <= number <= len(self.lines):
            return self.lines[number - 1].rstrip("\n")
        return None


class Excerpt(Source):
    """Some lines of a source, by their numbers as text."""

    __slots__ = ("kept",)

    def __init__(self, filename: str, kept: Mapping[str, str | None]) -> None:
        super().__init__(filename, ())
        self.kept = kept

    def line(self, number: int) -> str | None:
        """Return line `number` (from 1), or None when it was not kept."""
        return self.kept.get(str(number))


class Place(TypedDict):
    """Where a stretch of source text begins, by name."""

    filename: str
    file: str
    line: int
    column: int
    begin_line: int
    begin_column: int


class Span(NamedTuple):
    """A stretch of source text; lines count from 1, columns from 0."""

    source: Source | None
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    caller: Span | None = None

    @property
    def filename(self) -> str:
        """The file the span lies in, or `<unknown>`."""
        return self.source.filename if self.source else "<unknown>"

    @property
    def is_known(self) -> bool:
        """Whether the span points into a source text."""
        return self.source is not None

    @property
    def named(self) -> Place:
        """Where the span begins, by name."""
        file, line, column = self.filename, self.line, self.column
        return Place(filename=file, file=file, line=line, column=column, begin_line=line, begin_column=column)

    def called_from(self, caller: Span) -> Span:
        """Return this span as seen through the call at `caller` (what inlining does)."""
        if not caller.is_known:
            return self
        outer = self.caller.called_from(caller) if self.caller else caller
        return self._replace(caller=outer)

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column + 1}" if self.is_known else "<unknown>"


UNKNOWN = Span(None)
"""The span of what nobody wrote: IR built by hand or by a pass."""


def calling_line() -> Span:
    """Return the line of Python that called into this package, or an unknown span where its text is gone."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        filename, number = frame.f_code.co_filename, frame.f_lineno
        name = str(frame.f_globals.get("__name__", ""))
        is_ours = name.startswith("tilewright.") or name in ("contextlib", "functools")  # which call us for us
        lines = () if is_ours else tuple(linecache.getlines(filename, frame.f_globals))
        if 1 <= number <= len(lines):
            text = lines[number - 1].rstrip()
            start = len(text) - len(text.lstrip())
            return Span(Source(filename, lines), number, start, number, len(text.encode(errors="surrogatepass")))
        frame = frame.f_back
    return UNKNOWN


def span_at(place: Place, lines: Sequence[str]) -> Span:
    """Return the stretch of text at a place that is given by name, with all lines of that text where they are known."""
    filename = str(place.get("filename") or place.get("file") or "")
    line, column = (place.get(name) or place.get(f"begin_{name}") or 0 for name in ("line", "column"))
    source = Source(filename, tuple(f"{text}\n" for text in lines))
    return Span(source, int(line), int(column), int(line), int(column) + 1)


def shown(message: str, spans: Sequence[Span], notes: Sequence[str] = (), help: str = "") -> str:
    """Return a whole message: heading, source line, carets, values, call sites, help."""
    place = spans[0] if spans else UNKNOWN
    parts = [f"{place}: {message}" if place.is_known else message, *excerpt(spans)]
    parts += [f"    {note}" for note in notes]
    caller = place.caller
    while caller is not None:
        parts.append(f"    called from {caller}")
        caller = caller.caller
    return "\n".join([*parts, f"    help: {help}"] if help else parts)


def excerpt(spans: Sequence[Span]) -> list[str]:
    """Return the first span's source line with carets under every span that lies on it."""
    if not spans or spans[0].source is None:
        return []
    first = spans[0]
    text = first.source.line(first.line) if first.source else None
    if text is None:
        return []
    carets = [" "] * (len(text) + 1)
    for span in spans:
        if (span.source, span.line) != (first.source, first.line):
            continue
        start = _columns(text, span.column)
        end = _columns(text, span.end_column) if span.end_line == span.line else len(text)
        for column in range(start, max(end, start + 1)):
            carets[min(column, len(text))] = "^"
    margin = str(first.line)
    shown = text.replace("\t", " ")
    return [f" {margin} | {shown}", f" {' ' * len(margin)} | {''.join(carets).rstrip()}"]


def _columns(text: str, byte_offset: int) -> int:
    """Return the character column of a UTF-8 `byte_offset`, which is what `ast` counts in."""
    if text.isascii():
        return byte_offset
    return len(text.encode(errors="surrogatepass")[:byte_offset].decode(errors="ignore"))
