"""Preludes: the functions that a torch text begins with, those that it uses and no others."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from types import ModuleType

from tilewright.programs.torch_text import arithmetic, indexed, memory, orders, places, shapes, values

MODULES: tuple[ModuleType, ...] = (values, memory, shapes, arithmetic, places, indexed, orders)
IMPORTS = ("math", "torch")
"""The modules that these functions use."""


def prelude(body: str) -> tuple[list[str], list[str]]:
    """Return the imports that a text needs, and the definitions of all that it uses, in the order they are written."""
    known, wanted = _definitions(), _mentioned(ast.parse(body))
    used: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in used:
            used.add(name)
            wanted += known[name][1] if name in known else ()
    return [f"import {name}" for name in IMPORTS if name in used], [known[name][0] for name in known if name in used]


@cache
def _definitions() -> dict[str, tuple[str, list[str]]]:
    """Return every definition by its name, without decorators and annotations, and the names that it mentions."""
    trees = (ast.parse(inspect.getsource(module)) for module in MODULES)
    found = {name: _Bare().visit(node) for tree in trees for node in tree.body for name in _defined(node)}
    return {name: (ast.unparse(node), _mentioned(node)) for name, node in found.items()}


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
