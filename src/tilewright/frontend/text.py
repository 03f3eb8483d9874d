"""Text: programs read from strings and files."""

from __future__ import annotations

import ast
import builtins
import io
import itertools
import linecache
import os
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tilewright.core.annotations import dynamic
from tilewright.core.program import Function, Program
from tilewright.errors import InternalError, KernelError, KernelWarning, ResultCountError, TextExecutionError
from tilewright.frontend.capture import bodies, not_python, parse_text, remembered
from tilewright.frontend.tracebacks import brief
from tilewright.frontend.trees import code_of
from tilewright.source import Source, Span

_COUNTER = itertools.count()


@brief
def parse(code: str, names: Mapping[str, Any], filename: str = "<string>") -> Function | Program:
    """Return the one function or program that Python text defines.

    The text runs like a module: imports and constants in it work as usual. `names` are there from the start, and names
    that only annotations use become dynamic dims.
    """
    return only_result(*executed(code, names, filename), names)


def executed(code: str, names: Mapping[str, Any], filename: str) -> tuple[dict[str, Any], Source]:
    """Return what Python text defines, and the text as errors will show it."""
    unique = filename if os.path.exists(filename) else f"{filename}#{next(_COUNTER)}"
    lines = io.StringIO(code, newline=None).readlines()  # split where Python splits, which is not everywhere
    source = Source(unique, tuple(lines))
    tree = parse_text(code, source)
    holder = ModuleType("__tilewright_parsed__")
    module = holder.__dict__
    module.update(names)
    module.update({name: dynamic(name) for name in _free_annotation_names(tree, module)})
    linecache.cache[unique] = (len(code), None, lines, unique)
    with remembered(lines, source, tree), _findable(holder):
        _run(tree, module, source)
    return module, source


@contextmanager
def _findable(holder: ModuleType) -> Generator[None]:
    """Have a module where others look one up by its name, as `dataclass` does, while its text runs."""
    before = sys.modules.get(holder.__name__)
    sys.modules[holder.__name__] = holder
    try:
        yield
    finally:
        if before is None:
            sys.modules.pop(holder.__name__, None)
        else:
            sys.modules[holder.__name__] = before


def only_result(module: Mapping[str, Any], source: Source, names: Mapping[str, Any]) -> Function | Program:
    """Return the one function or program among what text defined; ResultCountError for none and for several."""
    found = results(module, names)
    if not found:
        help = "decorate one function with @pl.function, or one class with @pl.program"
        raise ResultCountError("No @pl.function or @pl.program found", spans=[Span(source, 1)], help=help)
    if len(found) > 1:
        message = f"Multiple functions/programs found: {', '.join(f.name for f in found)}"
        raise ResultCountError(message, spans=[found[1].span], help="make them methods of one @pl.program")
    return found[0]


@brief
def only_program(found: Function | Program) -> Program:
    """Return a program as it is; ResultCountError for a function."""
    if isinstance(found, Function):
        help = "put the function into a class decorated with @pl.program, or read it with pl.parse or pl.loads"
        raise ResultCountError("Expected @pl.program but found @pl.function", spans=[found.span], help=help)
    return found


def _run(tree: ast.Module, module: dict[str, Any], source: Source) -> None:
    """Execute the text; what goes wrong in it is reported at its line."""
    try:
        code = code_of(tree, source.filename)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise not_python(error, source) from None
    try:
        exec(code, module)  # noqa: S102 - the author's own program text
    except KernelError as error:
        error.locate([_failing_line(error, source)])
        raise
    except (InternalError, KernelWarning):
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise TextExecutionError(message, spans=[_failing_line(error, source)]) from error


def _failing_line(error: Exception, source: Source) -> Span:
    """Return the innermost line of the text that an exception passed through."""
    traceback, line = error.__traceback__, 1
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == source.filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    text = (source.line(line) or "").rstrip()
    return Span(source, line, len(text) - len(text.lstrip()), line, len(text.encode(errors="surrogatepass")))


def results(module: Mapping[str, Any], names: Mapping[str, Any]) -> list[Function | Program]:
    """Return what the text defined; functions that another result calls belong to it."""
    found = [v for k, v in module.items() if isinstance(v, (Function, Program)) and names.get(k) is not v]
    called = {id(callee) for f in found if isinstance(f, Function) for callee in f.callees}
    inside = {id(f) for p in found if isinstance(p, Program) for f in p.function_list}
    return [f for f in found if id(f) not in called | inside]


def _free_annotation_names(tree: ast.Module, known: Mapping[str, Any]) -> set[str]:
    used = {n.id for a in _annotations(tree.body) for n in ast.walk(a) if isinstance(n, ast.Name)}
    free = used - set(known) - set(vars(builtins))
    return free - {name for node in ast.walk(tree) for name in _bound_names(node)} if free else free


def _bound_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.split(".")[0] for alias in aliases)
        case _:
            pass


def _annotations(body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    """Yield the annotations of every function and name below a body."""
    for node in (node for inner in bodies(body) for node in inner):
        if isinstance(node, ast.FunctionDef):
            yield from (arg.annotation for arg in node.args.args if arg.annotation is not None)
            if node.returns is not None:
                yield node.returns
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation


def loads(path: str | os.PathLike[str], names: Mapping[str, Any]) -> Function | Program:
    """Return the one function or program that a Python file defines."""
    with open(path, encoding="utf-8") as file:
        return parse(file.read(), names, os.fspath(path))
