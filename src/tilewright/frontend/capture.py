"""Capture: a Python function as syntax, with its own file and lines.

A function at the left margin is read by itself, from the line that Python says it begins at, where what is found there
compiles to its code: a file may hold a hundred others. The file is read for all that is no such function.
"""

from __future__ import annotations

import ast
import io
import linecache
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from inspect import isasyncgenfunction, iscoroutinefunction
from types import CodeType
from types import FunctionType as PythonFunction
from typing import Any, TypeAlias

from tilewright.errors import NotPythonError, SourceUnavailableError, UnsupportedFeatureError
from tilewright.forks import computed_once
from tilewright.frontend.trees import parsed
from tilewright.records import entity
from tilewright.source import Source, Span, calling_line


@entity
class Captured:
    """A function's syntax tree and the text it came from."""

    node: ast.FunctionDef
    source: Source
    function: Any
    """The Python function itself, for its names, annotations and defaults."""
    siblings: tuple[ast.FunctionDef, ...] = ()
    """The functions defined in the same body, itself among them."""

    @computed_once
    def is_ours(self) -> bool:
        """Whether it is a function of this package."""
        return str(getattr(self.function, "__module__", "")).startswith("tilewright.")

    @property
    def text(self) -> str:
        """The function as it was written, from its name to its end."""
        return "".join(self.source.lines[self.node.lineno - 1 : self.node.end_lineno])

    def span(self, node: ast.AST) -> Span:
        """Return where a piece of the function was written."""
        return span_of(self.source, node)


def span_of(source: Source, node: Any) -> Span:
    """Return where a syntax node was written."""
    line = getattr(node, "lineno", 0)
    if not line:
        return Span(source, 1, 0, 1, 0)
    return Span(source, line, node.col_offset, node.end_lineno, node.end_col_offset)


_Place: TypeAlias = tuple[int, str]
"""Where a function begins, and its name."""


@entity
class _File:
    lines: list[str]
    source: Source
    tree: ast.Module | None = None
    """All of it, where that was read before."""

    @computed_once
    def functions(self) -> dict[_Place, tuple[ast.FunctionDef, tuple[ast.FunctionDef, ...]]]:
        """Every function in it, with those beside it; NotPythonError where it is not Python."""
        tree = self.tree or parse_text("".join(self.lines), self.source)
        return {(_first_line(node), node.name): (node, beside) for node, beside in _functions(tree.body)}

    @computed_once
    def codes(self) -> dict[_Place, list[CodeType]]:
        """What the text compiles to: the code of every function, by first line and name."""
        found: dict[_Place, list[CodeType]] = {}
        whole = compile("".join(self.lines), self.source.filename, "exec", dont_inherit=True)
        for code in codes(whole):
            found.setdefault((code.co_firstlineno, code.co_name), []).append(code)
        return found


_FILES: dict[str, _File] = {}
_INSIDE = " \t\r\n#)]}"
"""What a line of a function at the left margin begins with, behind its `def`."""
_CHANGED = "import the module again, or restart Python"
_COMMAND = "<string>"
"""What Python calls the text of `python -c`, and any other that has no file."""


def capture(function: Any, as_compiled: bool = False) -> Captured:
    """Return the syntax of `function`; SourceUnavailableError when its source text cannot be had.

    With `as_compiled` the text must still be what Python compiled the function from: files change under a process.
    """
    if not isinstance(function, PythonFunction) or iscoroutinefunction(function) or isasyncgenfunction(function):
        message = f"a kernel is a plain Python function, got {_shown(function)}"
        raise UnsupportedFeatureError(message, spans=[calling_line()], help="put the decorator right above a `def`")
    code = function.__code__
    file = _file(code.co_filename, function)
    if code.co_filename == _COMMAND:
        if not _is_code_of(file, code):
            raise _unavailable(function, f"there is no text for {_COMMAND}")
        linecache.cache[_COMMAND] = (0, None, file.lines, _COMMAND)  # for tracebacks, as Python 3.13 has it by itself
    if as_compiled and file.tree is None and (alone := _alone(file, code)) is not None:
        return Captured(alone, file.source, function)
    found = file.functions.get((code.co_firstlineno, code.co_name))
    if found is None:
        reason = f"line {code.co_firstlineno} of {code.co_filename} does not define it, as Python says it did"
        raise _unavailable(function, reason, _CHANGED)
    if as_compiled and not _is_code_of(file, code):
        raise _unavailable(function, f"{code.co_filename} has changed since Python read it", _CHANGED)
    return Captured(found[0], file.source, function, found[1])


def _is_code_of(file: _File, code: CodeType) -> bool:
    """Return whether a file's text, compiled as it is now, gives a function's own code."""
    found = file.codes.get((code.co_firstlineno, code.co_name))
    return found is not None and any(_is_same(other, code) for other in found)


def _is_same(a: CodeType, b: CodeType) -> bool:
    return (a.co_code, a.co_names, a.co_varnames, _plain(a)) == (b.co_code, b.co_names, b.co_varnames, _plain(b))


def _alone(file: _File, code: CodeType) -> ast.FunctionDef | None:
    """Return a function at the left margin, from its own lines alone; None where they do not compile to its code."""
    text = _at_margin(file.lines, code.co_firstlineno)
    try:
        whole = compile(text, file.source.filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    place, inner = (code.co_firstlineno, code.co_name), (each for each in codes(whole) if each is not whole)
    if not any((each.co_firstlineno, each.co_name) == place and _is_same(each, code) for each in inner):
        return None
    nodes = (node for node in parse_text(text, file.source).body if isinstance(node, ast.FunctionDef))
    return next((node for node in nodes if (_first_line(node), node.name) == place), None)


def _at_margin(lines: Sequence[str], first: int) -> str:
    """Return what may be the text of a function that begins in a line, at the left margin, in its line.

    Of what stands above it imports stay: Python calls what belongs to a module in its own way.
    """
    starts = (k for k in range(first - 1, len(lines)) if lines[k].startswith("def "))
    start = next(starts, len(lines)) + 1
    ends = (k for k in range(start, len(lines)) if lines[k][0] not in _INSIDE)
    return "".join([*_imports(lines[: first - 1]), *lines[first - 1 : next(ends, len(lines))]])


def _imports(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines that import something, and an empty one for each of the others."""
    is_inside = False
    for line in lines:
        is_import = is_inside or line.startswith(("import ", "from "))
        is_inside = is_import and ")" not in line and (is_inside or "(" in line)
        yield line if is_import else "\n"


def _plain(code: CodeType) -> list[object]:
    return [(type(value), value) for value in code.co_consts if not isinstance(value, CodeType)]


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all those inside it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from codes(value)


def _shown(value: object) -> str:
    if isinstance(value, PythonFunction):
        return "an async one"
    return f"class '{value.__name__}'" if isinstance(value, type) else repr(value)


def _file(filename: str, function: PythonFunction) -> _File:
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, function.__globals__)
    lines = _command_lines() if filename == _COMMAND and not lines else lines
    if not lines:
        raise _unavailable(function, f"there is no text for {filename}")
    known = _FILES.get(filename)
    if known is None or known.lines is not lines:
        source = Source(filename, tuple(lines))
        known = _FILES[filename] = _File(lines, source)
    return known


@cache
def _command_lines() -> list[str]:
    """Return the lines of the command that `python -c` runs, none where it runs something else."""
    if not sys.argv or sys.argv[0] != "-c" or len(sys.argv) >= len(sys.orig_argv):
        return []
    return io.StringIO(sys.orig_argv[-len(sys.argv)], newline=None).readlines()


@contextmanager
def remembered(lines: list[str], source: Source, tree: ast.Module) -> Generator[None]:
    """Keep the syntax of a text while it runs: there is no end to texts, and a tree is a hundred times its text."""
    _FILES[source.filename] = _File(lines, source, tree)
    try:
        yield
    finally:
        _FILES.pop(source.filename, None)


def _unavailable(function: PythonFunction, reason: str, help: str = "") -> SourceUnavailableError:
    message = f"the source of kernel `{function.__name__}` is not available: {reason}"
    help = help or "define it in a file or a notebook cell, or hand its text to pl.parse"
    return SourceUnavailableError(message, spans=[calling_line()], help=help)


def parse_text(text: str, source: Source) -> ast.Module:
    """Return the syntax tree of Python text; NotPythonError where it is not Python."""
    try:
        return parsed(text, source.filename)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise not_python(error, source) from None


def not_python(error: Exception, source: Source) -> NotPythonError:
    """Return Python's refusal of a text as an error that shows the place."""
    if isinstance(error, (RecursionError, MemoryError)):
        return NotPythonError(
            "this nests too deeply for Python", spans=[Span(source, 1)], help="write it in more lines"
        )
    line, column = getattr(error, "lineno", 1) or 1, (getattr(error, "offset", 1) or 1) - 1
    text = source.line(line) or ""
    start = len(text[: max(column, 0)].encode(errors="surrogatepass"))
    span = Span(source, line, start, line, start + 1)
    return NotPythonError(f"this is not Python: {getattr(error, 'msg', error)}", spans=[span])


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _functions(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.FunctionDef, tuple[ast.FunctionDef, ...]]]:
    """Yield every function definition below `body`, each with those beside it."""
    for inner in bodies(body):
        beside = tuple(node for node in inner if isinstance(node, ast.FunctionDef))
        yield from ((node, beside) for node in beside)


def bodies(body: Sequence[ast.stmt]) -> Iterator[Sequence[ast.stmt]]:
    """Yield `body` and every list of statements below it, without walking expressions; depth costs no stack."""
    waiting: list[Any] = [body]
    while waiting:
        yield (inner := waiting.pop())
        for node in inner:
            if isinstance(node, (ast.Assign, ast.Expr)):  # as most are, and hold none
                continue
            waiting += (getattr(node, name, ()) for name in ("body", "orelse", "finalbody"))
            waiting += (part.body for name in ("handlers", "cases") for part in getattr(node, name, ()))
