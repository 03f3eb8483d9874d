"""Preludes: the functions that a torch text begins with, those that it uses and no others."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from types import ModuleType

from tilewright.programs.torch_text import arithmetic, memory, orders, places, shapes, values

MODULES: tuple[ModuleType, ...] = (values, memory, shapes, arithmetic, places, orders)
IMPORTS = ("math", "torch")
"""The modules that these functions use."""


def prelude(text: str) -> list[str]:
    """Return the definitions of what a text uses and of all that they use, in the order they are written."""
    known, wanted = _definitions(), _mentioned(ast.parse(text))
    used: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in known and name not in used:
            used.add(name)
            wanted += _mentioned(known[name])
    return [ast.unparse(known[name]) for name in known if name in used]


def imports(text: str) -> list[str]:
    """Return the imports that a text needs."""
    found = _mentioned(ast.parse(text))
    return [f"import {name}" for name in IMPORTS if name in found]


@cache
def _definitions() -> dict[str, ast.stmt]:
    """Return every definition by its name, without decorators and annotations."""
    trees = (ast.parse(inspect.getsource(module)) for module in MODULES)
    return {name: _Bare().visit(node) for tree in trees for node in tree.body for name in _defined(node)}


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        yield node.targets[0].id


def _mentioned(node: ast.AST) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


class _Bare(ast.NodeTransformer):
    """Takes decorators and annotations off: a text has nothing to check them with."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Return a function as it is called."""
        self.generic_visit(node)
        node.decorator_list, node.returns = [], None
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Return a parameter by its name alone."""
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Return an assignment without what it says about the type."""
        assert node.value is not None
        return ast.copy_location(ast.Assign([node.target], node.value), node)
