"""Capture: a Python function as syntax, with its own file and lines."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType as PythonFunction
from typing import Any

from tilewright.errors import ParserSyntaxError
from tilewright.source import Source, Span


@dataclass(frozen=True, eq=False)
class Captured:
    """A function's syntax tree and the text it came from."""

    node: ast.FunctionDef
    source: Source
    function: Any
    """The Python function itself, for its names, annotations and defaults."""

    def span(self, node: ast.AST) -> Span:
        """Return where a piece of the function was written."""
        return span_of(self.source, node)


def span_of(source: Source, node: Any) -> Span:
    """Return where a syntax node was written."""
    line = getattr(node, "lineno", 0)
    if not line:
        return Span(source, 1, 0, 1, 0)
    return Span(source, line, node.col_offset, node.end_lineno, node.end_col_offset)


@dataclass(frozen=True, eq=False)
class _File:
    lines: list[str]
    source: Source
    functions: dict[tuple[int, str], ast.FunctionDef]


_FILES: dict[str, _File] = {}


def capture(function: PythonFunction) -> Captured:
    """Return the syntax of `function`; OSError when its source text cannot be had."""
    code = function.__code__
    file = _file(code.co_filename, function)
    node = file.functions.get((code.co_firstlineno, function.__name__))
    if node is None:
        raise _unavailable(function, "its text is not where Python says it was defined")
    return Captured(node, file.source, function)


def _file(filename: str, function: PythonFunction) -> _File:
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, function.__globals__)
    if not lines:
        raise _unavailable(function, f"there is no text for {filename}")
    known = _FILES.get(filename)
    if known is None or known.lines is not lines:
        source = Source(filename, tuple(lines))
        known = remember(lines, source, parse_text("".join(lines), source))
    return known


def remember(lines: list[str], source: Source, tree: ast.Module) -> _File:
    """Keep a file's syntax for as long as its text stays the same object."""
    functions = {(_first_line(node), node.name): node for node in _functions(tree.body)}
    _FILES[source.filename] = _File(lines, source, functions)
    return _FILES[source.filename]


def _unavailable(function: PythonFunction, reason: str) -> OSError:
    return OSError(
        f"the source of kernel `{function.__name__}` is not available: {reason}\n"
        "    help: define it in a file or a notebook cell, or hand its text to pl.parse"
    )


def parse_text(text: str, source: Source) -> ast.Module:
    """Return the syntax tree of Python text; ParserSyntaxError where it is not Python."""
    try:
        return ast.parse(text, source.filename)
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", 1) or 1, (getattr(error, "offset", 1) or 1) - 1
        span = Span(source, line, max(column, 0), line, max(column, 0) + 1)
        raise ParserSyntaxError(f"this is not Python: {getattr(error, 'msg', error)}", spans=[span]) from None


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _functions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """Yield every function definition below `body`, without walking expressions."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node
        for name in ("body", "orelse", "finalbody"):
            yield from _functions(getattr(node, name, ()))
        for handler in getattr(node, "handlers", ()):
            yield from _functions(handler.body)
