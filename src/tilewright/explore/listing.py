"""Listings: texts line by line, each line with the place in the author's text that it came from."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.printer import Printer
from tilewright.core.program import Function, Program
from tilewright.core.stmt import Stmt
from tilewright.source import Source, Span


class Written(str):
    """A printed line that knows where it was written, also once it is indented."""

    span: Span

    @staticmethod
    def of(text: str, span: Span) -> Written:
        """Return a line that was written at a place."""
        made = Written(text)
        made.span = span
        return made

    def __radd__(self, other: str) -> Written:
        return Written.of(str.__add__(other, self), self.span)


class PlacedPrinter(Printer):
    """A printer whose lines know where their statements were written."""

    def stmt(self, stmt: Stmt) -> list[str]:
        """Return one statement as lines."""
        return [line if isinstance(line, Written) else Written.of(line, stmt.span) for line in super().stmt(stmt)]


def listed(program: Program) -> list[tuple[str, Span | None]]:
    """Return a program's concise text, each line with where it was written; headings are where their functions are."""
    spans = {f"def {function.name}(": function.span for function in program.function_list}
    lines = [*program.printed(PlacedPrinter("pl", True))]
    while lines and not lines[-1]:
        lines.pop()
    return [(str(line), _span(line, spans)) for line in lines]


def _span(line: str, functions: dict[str, Span]) -> Span | None:
    if isinstance(line, Written):
        return line.span if line.span.is_known else None
    return next((span for head, span in functions.items() if line.lstrip().startswith(head) and span.is_known), None)


def sources(functions: Iterable[Function], spans: Iterable[Span]) -> dict[str, Source]:
    """Return the texts that functions and spans lie in, by file name, those of functions first."""
    found: dict[str, Source] = {}
    for span in (*(function.span for function in functions), *spans):
        step: Span | None = span
        while step is not None:
            if step.source is not None and step.source.lines:
                found.setdefault(step.filename, step.source)
            step = step.caller
    return found
