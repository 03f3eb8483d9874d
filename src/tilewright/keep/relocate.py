"""Relocation: where a kept program's errors point to in the sources of this process.

Code is kept by what its kernels say, not by where they stand: a file may be somewhere else, have grown at its top, or
between two lines. So a kept error names a piece of a text by its number, and a table of spans, which is that of the
text in this process, finds it again when such an error is to be shown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeAlias, overload

from tilewright.backends.interface import Error
from tilewright.errors import KernelError
from tilewright.forks import computed_once
from tilewright.frontend.capture import capture, span_of
from tilewright.frontend.names import Resolver
from tilewright.source import Excerpt, Span

Relocation: TypeAlias = Callable[[Sequence[Error]], Sequence[Error]]


class SpanTable(Protocol):
    """The pieces of some texts, numbered in an order that texts which say the same share."""

    def freed(self, span: Span) -> Span:
        """Return a span as `named` makes it; one that lies outside of all texts as it is."""
        ...

    def placed(self, span: Span, text: int, piece: int) -> Span:
        """Return where a piece stands in this process that a freed span names."""
        ...


def named(text: int, piece: int, line: int = 0, column: int = 0, end_line: int = 0, end_column: int = 0,
          shown: str | None = None) -> Span:  # fmt: skip
    """Return a span that names a piece of a text by their numbers, and may show its line."""
    return Span(Excerpt(f"{text}:{piece}", {str(line): shown}), line, column, end_line, end_column)


def freed(errors: Sequence[Error], table: SpanTable) -> list[Error]:
    """Return errors that point to pieces of texts, not to files and lines."""
    return [error._replace(span=_changed(error.span, table.freed)) for error in errors]


def _changed(span: Span, change: Callable[[Span], Span]) -> Span:
    """Return a span and those of its callers, each changed."""
    caller = None if span.caller is None else _changed(span.caller, change)
    return (change(span) if span.is_known else span)._replace(caller=caller)


class Here(Sequence[Error]):
    """Kept errors as this process shows them, found when one is asked for."""

    def __init__(self, errors: Sequence[Error], table: SpanTable) -> None:
        self._errors = errors
        self._table = table

    def __len__(self) -> int:
        return len(self._errors)

    @overload
    def __getitem__(self, index: int) -> Error: ...
    @overload
    def __getitem__(self, index: slice) -> list[Error]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return an error, pointing to where its piece stands now."""
        return self._all[index]

    @computed_once
    def _all(self) -> list[Error]:
        return [error._replace(span=_changed(error.span, self._placed)) for error in self._errors]

    def _placed(self, span: Span) -> Span:
        text, separator, piece = span.filename.partition(":")
        return self._table.placed(span, int(text), int(piece)) if separator and text.isdecimal() else span


class FunctionSpans:
    """The syntax of Python functions; lines of a freed span count from the function's first.

    A function is read when one of its errors is to be shown, unless that has happened before; where its text is gone,
    the error points to where the piece would stand if nothing in the function had moved.
    """

    def __init__(self, resolvers: Sequence[Resolver]) -> None:
        self._resolvers = resolvers

    def freed(self, span: Span) -> Span:
        """Return a span that names a piece of the innermost function around it."""
        number = self._around(span)
        if number is None or span.source is None:
            return span
        start = self._resolvers[number].code.co_firstlineno
        piece = next((n for n, at in enumerate(_places(self._resolvers[number])) if at[1:5] == span[1:5]), -1)
        line, end_line = span.line - start, max(span.end_line - start, 0)
        return named(number, piece, line, span.column, end_line, span.end_column, span.source.line(span.line))

    def _around(self, span: Span) -> int | None:
        """Return the number of the innermost function that a span lies in, None for one outside of all."""
        found = [
            (node.lineno, number)
            for number, captured in enumerate(resolver.captured for resolver in self._resolvers)
            if captured is not None
            and captured.source.filename == span.filename
            and (node := captured.node).lineno <= span.line <= (node.end_lineno or node.lineno)
        ]
        return max(found)[1] if found else None

    def placed(self, span: Span, text: int, piece: int) -> Span:
        """Return where a piece of a function stands in this process."""
        resolver = self._resolvers[text]
        if resolver.captured is None:
            with suppress(KernelError):
                resolver.captured = capture(resolver.function, as_compiled=True)
        if resolver.captured is not None and piece >= 0:
            return list(_places(resolver))[piece]
        line, end_line = (number + resolver.code.co_firstlineno for number in (span.line, span.end_line))
        shown = None if span.source is None else span.source.line(span.line)
        source = Excerpt(resolver.code.co_filename, {str(line): shown})
        return Span(source, line, span.column, end_line, span.end_column)


def _places(resolver: Resolver) -> Iterator[Span]:
    """Yield where each piece of a function stands, in an order that functions of the same syntax share."""
    for node in ast.walk(resolver.captured.node):
        yield span_of(resolver.captured.source, node)
