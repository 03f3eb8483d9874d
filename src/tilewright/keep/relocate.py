"""Relocation: where a kept program's errors point to in the sources of this process.

Code is kept by what its kernels say, not by where they stand: a file may be somewhere else, have grown at its top, or
between two lines. So a kept error names a function, one piece of its syntax, and where that stood inside the function.
The function is read for it when such an error is to be shown, unless that has happened before; where its text is gone,
the error points to where the piece would stand if nothing in the function had moved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, overload

from tilewright.errors import KernelError
from tilewright.forks import computed_once
from tilewright.frontend.capture import capture, span_of
from tilewright.frontend.names import Resolver
from tilewright.source import Source, Span

Error = tuple[str, Span]


class Piece(Source):
    """Stands for a function and a piece of its syntax, by number; lines count from the function's first."""

    __slots__ = ("known",)

    def __init__(self, function: int, piece: int, known: str | None) -> None:
        super().__init__(f"{function}:{piece}", ())
        self.known = known

    def line(self, number: int) -> str | None:
        """Return the text of the piece's first line."""
        return self.known


class Moved(Source):
    """A source of which one line is known."""

    __slots__ = ("known",)

    def __init__(self, filename: str, known: str | None) -> None:
        super().__init__(filename, ())
        self.known = known

    def line(self, number: int) -> str | None:
        """Return the line that is known."""
        return self.known


def freed(errors: Sequence[Error], resolvers: Sequence[Resolver]) -> list[Error]:
    """Return errors that point to functions and pieces of them, not to files and lines."""
    return [(message, _freed(span, resolvers)) for message, span in errors]


def _freed(span: Span, resolvers: Sequence[Resolver]) -> Span:
    number = _around(span, resolvers)
    if span.source is None or number is None:
        return span
    start = resolvers[number].code.co_firstlineno
    piece = next((n for n, at in enumerate(_places(resolvers[number])) if at == span[1:5]), -1)
    caller = None if span.caller is None else _freed(span.caller, resolvers)
    source = Piece(number, piece, span.source.line(span.line))
    return Span(source, span.line - start, span.column, max(span.end_line - start, 0), span.end_column, caller)


def _around(span: Span, resolvers: Sequence[Resolver]) -> int | None:
    """Return the number of the innermost function that a span lies in, None for one outside of all."""
    found = [
        (node.lineno, number)
        for number, node in enumerate(map(_node, resolvers))
        if node is not None
        and resolvers[number].captured.source.filename == span.filename
        and node.lineno <= span.line <= (node.end_lineno or node.lineno)
    ]
    return max(found)[1] if found else None


def _node(resolver: Resolver) -> ast.FunctionDef | None:
    return resolver.captured.node if resolver.captured is not None else None


def _places(resolver: Resolver) -> Iterator[tuple[int, ...]]:
    """Yield where each piece of a function stands, in an order that functions of the same syntax share."""
    for node in ast.walk(resolver.captured.node):
        yield span_of(resolver.captured.source, node)[1:5]


class Here(Sequence[Error]):
    """Kept errors as this process shows them, found when one is asked for."""

    def __init__(self, errors: Sequence[Error], resolvers: Sequence[Resolver]) -> None:
        self._errors = errors
        self._resolvers = resolvers

    def __len__(self) -> int:
        return len(self._errors)

    @overload
    def __getitem__(self, index: int) -> Error: ...
    @overload
    def __getitem__(self, index: slice) -> list[Error]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return an error, pointing to where its function stands now."""
        return self._all[index]

    @computed_once
    def _all(self) -> list[Error]:
        return [(message, self._placed(span)) for message, span in self._errors]

    def _placed(self, span: Span) -> Span:
        number, separator, piece = span.filename.partition(":")
        if span.source is None or not separator or not number.isdecimal():
            return span
        resolver = self._resolvers[int(number)]
        caller = None if span.caller is None else self._placed(span.caller)
        if resolver.captured is None:
            with suppress(KernelError):
                resolver.captured = capture(resolver.function, as_compiled=True)
        if resolver.captured is not None and int(piece) >= 0:
            line, column, end_line, end_column = list(_places(resolver))[int(piece)]
            return Span(resolver.captured.source, line, column, end_line, end_column, caller)
        start = resolver.code.co_firstlineno
        source = Moved(resolver.code.co_filename, span.source.line(span.line))
        return Span(source, span.line + start, span.column, span.end_line + start, span.end_column, caller)
