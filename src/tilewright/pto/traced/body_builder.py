"""The body builder: what the walk over a `@pto.jit` body asks for, as ops of a PTO function."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from tilewright.errors import ElementWriteError, SubscriptError, UnsupportedFeatureError
from tilewright.frontend.names import nearest
from tilewright.frontend.walk.expressions import EXPRESSIONS
from tilewright.frontend.walk.statements import STATEMENTS
from tilewright.frontend.walk.walker import Handler
from tilewright.pto.module import Value
from tilewright.pto.traced import (
    arithmetic,
    attributes,
    branches,
    calls,
    launches,
    loops,
    nested,
    places,
    scopes,
    statements,
)
from tilewright.pto.traced.namespace import Operations, operations
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import is_runtime


@dataclass(eq=False, kw_only=True)
class BodyBuilder(Tracer):
    """The walk over a body, whose values are those of a PTO module."""

    syntax: ClassVar[Mapping[type[ast.AST], Handler]] = {
        **EXPRESSIONS,
        **STATEMENTS,
        ast.AnnAssign: statements.annotated,
        ast.Assert: statements.assert_,
        ast.Call: calls.call,
        ast.For: loops.loop,
        ast.FunctionDef: nested.define,
        ast.GeneratorExp: loops.comprehension,
        ast.Lambda: nested.lambda_,
        ast.ListComp: loops.comprehension,
        ast.Return: statements.return_,
        ast.Subscript: launches.item,
        ast.While: loops.repeat,
        ast.With: scopes.with_,
    }
    namespaces: ClassVar[tuple[type, ...]] = (ModuleType, Operations)
    bind = statements.bind
    binary = arithmetic.binary
    unary = arithmetic.unary
    compare = arithmetic.compare
    logical = arithmetic.logical
    attribute = attributes.attribute
    condition = branches.condition
    branch = branches.branch

    def select(self, condition: Value, node: ast.IfExp) -> Value:
        """Return one of two scalars, both computed."""
        return arithmetic.select(self, condition, self.evaluate(node.body), self.evaluate(node.orelse), node)

    def index(self, value: Any, node: ast.expr) -> Any:
        """Return what a Python container is indexed by; SubscriptError for a value of the module."""
        if is_runtime(value):
            help = "write the cases as an `if`, or read the value from memory"
            message = "a Python container needs an index known at compile time"
            raise self.error(SubscriptError, node, message, help=help)
        return value

    subscript = places.place

    def takes(self, node: ast.Assign | ast.Expr) -> bool:
        """Do an assignment to an attribute, which a tile has one of; return whether it was one."""
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(target, ast.Attribute):
            return False
        places.resize(self, target, self.evaluate(node.value), node.value)
        return True

    def missing(self, owner: object, node: ast.Attribute) -> str:
        """Return the op whose name is nearest."""
        is_pto = isinstance(owner, ModuleType) and owner.__name__ == "tilewright.pto"
        if is_pto and node.attr[:1] == "t" and f"tile.{node.attr[1:]}" in operations():  # as text calls it
            return f"did you mean `{ast.unparse(node.value)}.tile.{node.attr[1:]}`?"
        return nearest(node.attr, [*dir(owner), *operations()], f"{ast.unparse(node.value)}.") if is_pto else ""

    def unassignable(self, target: ast.expr) -> ElementWriteError:
        """Return the error for an assignment to anything but names."""
        help = "pto.store_scalar(value, pointer, offset) writes one element, pto.tile ops a whole tile"
        return self.error(ElementWriteError, target, f"`{ast.unparse(target)}` cannot be assigned", help=help)

    def unsupported(self, node: ast.AST) -> UnsupportedFeatureError:
        """Return the error for syntax that bodies do not have."""
        what = ast.unparse(node).partition("\n")[0]
        help = _HELP.get(type(node), "kernels have assignments, calls, `for`, `while`, `if`, `with` and `assert`")
        return self.error(UnsupportedFeatureError, node, f"a @pto.jit body has no `{what}`", help=help)


_HELP: dict[type[ast.AST], str] = {
    ast.Break: "leave the loop from its own branches, not from a scope, and not where it is written out",
    ast.Continue: "put the rest of the round under an `if`, inside the same scope",
    ast.Try: "kernels raise nothing, so there is nothing to catch",
    ast.Raise: "use `assert` on values that are known at compile time",
    ast.AsyncFunctionDef: "kernels wait for nothing: write `def`",
    ast.ClassDef: "define classes outside the kernel",
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
    ast.Global: "a kernel writes to memory through pointers, not to Python variables",
    ast.Nonlocal: "a kernel writes to memory through pointers, not to Python variables",
}
