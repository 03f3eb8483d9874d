"""Error tables: what the numbers of a running program's errors mean, as plain data and back.

    table := {"sources": [["kernel.py", {"12": "its text"}] ...], "errors": [error ...]}
    error := ["message", span, "function", "exact message"]
    span  := [source, line, column, end line, end column, span of the caller] | null

Of each source those lines are kept that an error points to, so that it still shows the author's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.backends.interface import Error
from tilewright.source import UNKNOWN, Excerpt, Source, Span


def plain_errors(errors: Sequence[Error]) -> dict[str, Any]:
    """Return messages and spans as JSON can hold them."""
    kept: dict[Source, dict[str, str]] = {}
    table = [[error.message, _plain_span(error.span, kept), error.function, error.exact] for error in errors]
    return {"sources": [[source.filename, lines] for source, lines in kept.items()], "errors": table}


def read_errors(plain: Mapping[str, Any]) -> list[Error]:
    """Return what `plain_errors` was given; LookupError, TypeError or ValueError for anything else."""
    sources = [Excerpt(filename, lines) for filename, lines in plain["sources"]]
    return [Error(message, _read_span(span, sources), *rest) for message, span, *rest in plain["errors"]]


def _plain_span(span: Span | None, kept: dict[Source, dict[str, str]]) -> list[Any] | None:
    if span is None or span.source is None:
        return None
    lines, text = kept.setdefault(span.source, {}), span.source.line(span.line)
    if text is not None:
        lines[str(span.line)] = text
    number = list(kept).index(span.source)
    return [number, span.line, span.column, span.end_line, span.end_column, _plain_span(span.caller, kept)]


def _read_span(plain: Sequence[Any] | None, sources: Sequence[Source]) -> Span:
    if plain is None:
        return UNKNOWN
    number, line, column, end_line, end_column, caller = plain
    known = None if caller is None else _read_span(caller, sources)
    return Span(sources[number], line, column, end_line, end_column, known)
