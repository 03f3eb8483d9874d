"""Relocation: where a kept program's errors point to in the sources of this process.

Code is kept by what its kernels say, not by where they stand: a file may be somewhere else, or have grown at its top.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.source import Source, Span

Origin = tuple[str, int]
"""The file of a kernel, and its first line."""


class Moved(Source):
    """A source some of whose lines stand elsewhere now."""

    __slots__ = ("distance", "known")

    def __init__(self, filename: str, known: Source, distance: int) -> None:
        super().__init__(filename, ())
        self.known = known
        self.distance = distance

    def line(self, number: int) -> str | None:
        """Return line `number` (from 1) of where it stands now."""
        return self.known.line(number - self.distance)


def relocated(
    errors: Sequence[tuple[str, Span]], before: Sequence[Origin], now: Sequence[Origin]
) -> list[tuple[str, Span]]:
    """Return errors with their spans moved as the kernels they lie in have moved."""
    if list(before) == list(now):
        return list(errors)
    return [(message, _moved(span, before, now)) for message, span in errors]


def _moved(span: Span, before: Sequence[Origin], now: Sequence[Origin]) -> Span:
    found = [n for n, (file, line) in enumerate(before) if file == span.filename and line <= span.line]
    if not found or span.source is None:
        return span
    nearest = max(found, key=lambda n: before[n][1])
    distance = now[nearest][1] - before[nearest][1]
    source = Moved(now[nearest][0], span.source, distance)
    caller = None if span.caller is None else _moved(span.caller, before, now)
    end = span.end_line + distance if span.end_line else span.end_line
    return span._replace(source=source, line=span.line + distance, end_line=end, caller=caller)
