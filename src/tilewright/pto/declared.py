"""Declared functions: where a `@pto.jit` function stands, for everything there is to say about it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.errors import KernelError
from tilewright.source import Source, Span

if TYPE_CHECKING:
    from tilewright.frontend.capture import Captured

E = TypeVar("E", bound=KernelError)


@dataclass(frozen=True, eq=False)
class Declared:
    """A Python function and the name its kernel goes by."""

    function: Any
    name: str

    @property
    def directory(self) -> Path:
        """Where relative paths start: beside the file of the function, or where the process is."""
        try:
            file = inspect.getsourcefile(self.function)
        except TypeError:
            file = None
        return Path(file).resolve().parent if file is not None and Path(file).exists() else Path.cwd()

    def span(self, parameter: str | None = None) -> Span:
        """Return where the function, or one of its parameters, is declared; the line alone where its text is gone."""
        from tilewright.frontend.capture import capture

        try:
            captured = capture(self.function)
        except KernelError:
            code = self.function.__code__
            return Span(Source(code.co_filename, ()), code.co_firstlineno, 0, code.co_firstlineno, 0)
        found = next((arg for arg in _arguments(captured.node) if arg.arg == parameter), None)
        return name_span(captured) if found is None else captured.span(found)

    def statements(self) -> list[Span]:
        """Return where the body does something: more than say what it is for, and that it never runs."""
        from tilewright.frontend.capture import capture

        try:
            captured = capture(self.function)
        except KernelError:
            return []
        return [captured.span(stmt) for stmt in captured.node.body if not _says_nothing(stmt)]

    def refusal(
        self, kind: type[E], message: str, parameter: str | None = None, help: str = "", notes: Iterable[str] = ()
    ) -> E:
        """Return an error that shows the declaration, at one parameter where that is given."""
        error = kind(message, spans=[self.span(parameter)], help=help, notes=notes)
        error.function = self.name
        return error


def _says_nothing(stmt: ast.stmt) -> bool:
    """Return whether a statement is a text, `...`, `pass`, `raise` or a `return` of nothing."""
    if isinstance(stmt, ast.Expr | ast.Return):
        return stmt.value is None or isinstance(stmt.value, ast.Constant)
    return isinstance(stmt, ast.Pass | ast.Raise)


def _arguments(node: ast.FunctionDef) -> Iterator[ast.arg]:
    arguments = node.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None)


def name_span(captured: Captured) -> Span:
    """Return where the name of a function is written."""
    node = captured.node
    start = node.col_offset + len("def ")
    end = start + len(node.name.encode())
    return Span(captured.source, node.lineno, start, node.lineno, end)
