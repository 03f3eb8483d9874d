"""Text: programs read from strings and files."""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.core.annotations import dynamic
from tilewright.core.program import Function, Program
from tilewright.errors import KernelError, ParserSyntaxError
from tilewright.frontend.capture import parse_text, remember, span_of
from tilewright.source import Source

_COUNTER = itertools.count()


def parse(code: str, names: Mapping[str, Any], filename: str = "<string>") -> Function | Program:
    """Return the one function or program that Python text defines.

    The text runs like a module: imports and constants in it work as usual. `names` are there from the start, and names
    that only annotations use become dynamic dims.
    """
    unique = filename if os.path.exists(filename) else f"{filename}#{next(_COUNTER)}"
    lines = code.splitlines(keepends=True)
    source = Source(unique, tuple(lines))
    tree = parse_text(code, source)
    module: dict[str, Any] = {"__name__": "__tilewright_parsed__", **names}
    module.update({name: dynamic(name) for name in _free_annotation_names(tree, module)})
    linecache.cache[unique] = (len(code), None, lines, unique)
    remember(lines, source, tree)
    _run(tree, module, source)
    found = _results(module, names)
    if not found:
        raise ValueError("No @pl.function or @pl.program found")
    if len(found) > 1:
        raise ValueError(f"Multiple functions/programs found: {', '.join(f.name for f in found)}")
    return found[0]


def _run(tree: ast.Module, module: dict[str, Any], source: Source) -> None:
    """Execute the text; what goes wrong in it is reported at its line."""
    try:
        exec(compile(tree, source.filename, "exec"), module)  # noqa: S102 - the author's own program text
    except KernelError:
        raise
    except Exception as error:
        traceback, line = error.__traceback__, 1
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == source.filename:
                line = traceback.tb_lineno
            traceback = traceback.tb_next
        node = ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=len(source.line(line) or ""))
        raise ParserSyntaxError(f"{type(error).__name__}: {error}", spans=[span_of(source, node)]) from error


def _results(module: Mapping[str, Any], names: Mapping[str, Any]) -> list[Function | Program]:
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
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield from (arg.annotation for arg in node.args.args if arg.annotation is not None)
            if node.returns is not None:
                yield node.returns
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation
        for inner in ("body", "orelse"):
            yield from _annotations(getattr(node, inner, ()))


def loads(path: str | os.PathLike[str], names: Mapping[str, Any]) -> Function | Program:
    """Return the one function or program that a Python file defines."""
    with open(path, encoding="utf-8") as file:
        return parse(file.read(), names, os.fspath(path))
