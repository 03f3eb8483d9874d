"""The kernel builder: what the walk over a kernel's text asks for, as IR."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.frontend import (
    calls,
    loops,
    operators,
    properties,
    scopes,
    statements,
)
from tilewright.frontend.launchable import Launchable
from tilewright.frontend.names import is_ours
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.expressions import EXPRESSIONS
from tilewright.frontend.walk.statements import STATEMENTS
from tilewright.frontend.walk.walker import Handler, Listed, Value

# what few kernels have is read when one has it


def _assert(t: Translator, node: ast.Assert) -> None:
    from tilewright.frontend.static_calls import assert_

    assert_(t, node)


def _dict(t: Translator, node: ast.Dict) -> dict[Any, Value]:
    from tilewright.frontend.dicts import literal

    return literal(t, node)


def _comprehension(t: Translator, node: ast.ListComp | ast.GeneratorExp) -> Listed:
    from tilewright.frontend.unrolled_loops import comprehension

    return comprehension(t, node)


class KernelBuilder(Translator):
    """The walk over a kernel, whose values are expressions of the IR."""

    syntax: ClassVar[Mapping[type[ast.AST], Handler]] = {
        **EXPRESSIONS,
        **STATEMENTS,
        ast.AnnAssign: statements.annotated,
        ast.Assert: _assert,
        ast.Break: statements.exit_loop,
        ast.Call: calls.call,
        ast.Continue: statements.exit_loop,
        ast.Dict: _dict,
        ast.For: loops.loop,
        ast.GeneratorExp: _comprehension,
        ast.ListComp: _comprehension,
        ast.Return: statements.return_,
        ast.While: loops.repeat,
        ast.With: scopes.scope,
    }
    bind = statements.bind
    takes = statements.takes
    effect = statements.effect
    binary = operators.binary
    unary = operators.unary
    check_comparison = operators.check_comparison
    compare = operators.compare
    logical = operators.logical
    attribute = properties.attribute

    def condition(self, node: ast.expr) -> Expr | bool:
        """Return a branch or loop condition."""
        from tilewright.frontend.branches import condition

        return condition(self, node)

    def taken(self, body: Sequence[ast.stmt]) -> None:
        """Translate the branch that a known condition takes, in place."""
        from tilewright.frontend.branches import taken

        taken(self, body)

    def branch(self, condition: Expr, node: ast.If) -> None:
        """Translate both sides of an `if`."""
        from tilewright.frontend.branches import branch

        branch(self, condition, node)

    def select(self, condition: Value, node: ast.IfExp) -> Value:
        """Return one of two values, as a condition says that only the running program knows."""
        from tilewright.frontend.choices import select

        return select(self, condition, node)

    def parts(self, value: Value, source: ast.expr, count: int) -> Value:
        """Return a multi-value result as a tuple of values."""
        if not isinstance(value, Expr):
            return value
        from tilewright.frontend.invocations import parts

        return parts(self, value, source, count)

    def write(self, target: ast.Subscript, value: Value, source: ast.expr) -> None:
        """Translate `owner[window] = value`."""
        from tilewright.frontend.writes import write

        write(self, target, value, source)

    def changes(self, target: ast.Subscript, value: ast.expr) -> bool:
        """Translate `t[mask] = ...` where its right side is under the same mask; return whether it is."""
        from tilewright.frontend.picks import masked_change

        return masked_change(self, target, value)

    def updated(self, target: ast.Subscript, both: ast.BinOp) -> Value:
        """Return what a window becomes that something is added to."""
        from tilewright.frontend.updates import updated

        return updated(self, target, both)

    def index(self, value: Value, node: ast.expr) -> Value:
        """Return what a Python sequence or mapping is indexed by."""
        from tilewright.frontend.subscripts import index

        return index(self, value, node)

    def subscript(self, owner: Value, node: ast.Subscript) -> Value:
        """Return a window of a tensor or tile, an element, or a kernel on a grid."""
        if isinstance(owner, Launchable):
            from tilewright.frontend.launches import launching

            return launching(self, owner, node)
        from tilewright.frontend.subscripts import subscript

        return subscript(self, owner, node)

    def describe(self, value: Value) -> str:
        """Return what a value is, as messages say it."""
        return str(value.type) if isinstance(value, Expr) else repr(value)

    def show(self, value: Value) -> str:
        """Return a value as texts write it."""
        from tilewright.frontend.static_calls import show

        return show(value)

    def missing(self, owner: Value, node: ast.Attribute) -> str:
        """Return what the language has for a name of another library's."""
        from tilewright.frontend.foreign import meant

        return meant(node.attr) if is_ours(owner) else ""

    def unsupported(self, node: ast.AST) -> UnsupportedFeatureError:
        """Return the error for syntax that kernels do not have."""
        what, name = "expression" if isinstance(node, ast.expr) else "statement", type(node).__name__
        message = f"Unsupported {what} type: {name}"
        return self.error(UnsupportedFeatureError, node, message, help=_INSTEAD.get(name, ""))

    def unassignable(self, target: ast.expr) -> UnsupportedFeatureError:
        """Return the error for an assignment to what is neither a name nor a window."""
        help = "write `name = value` or `tensor[window] = value`"
        message = "a value is bound to a name or a window"
        return self.error(UnsupportedFeatureError, target, message, help=help)


_LOOP = "write a loop: `for i in pl.range(...)`, or pl.unroll to have it written out"
_OUTSIDE = "define it outside the kernel, decorated with @pl.inline"
_INSTEAD = {
    "AsyncFor": "drop `async`",
    "AsyncFunctionDef": _OUTSIDE,
    "AsyncWith": "drop `async`",
    "Await": "drop `await`",
    "ClassDef": "define it outside the kernel",
    "Delete": "drop this line: storage is reused as soon as nobody reads it",
    "DictComp": _LOOP,
    "FunctionDef": _OUTSIDE,
    "Global": "a kernel reads globals and cannot change them: return the value, or store it into an Out tensor",
    "Import": "import it at the top of the file",
    "ImportFrom": "import it at the top of the file",
    "Lambda": _OUTSIDE,
    "Match": "use if and elif",
    "NamedExpr": "bind the name on a line of its own",
    "Nonlocal": "a kernel reads names from outside and cannot change them",
    "Raise": "a kernel has no exceptions: pl.static_assert checks what is known before the program runs",
    "Set": "use a tuple",
    "SetComp": _LOOP,
    "Slice": "tensors, tiles, tuples and lists have slices",
    "Starred": "a star stands in a list, a tuple, a call, or before one of several names",
    "Try": "a kernel has no exceptions: check before the call",
    "TryStar": "a kernel has no exceptions: check before the call",
    "Yield": "pl.yield_ hands values on from a loop body or branch",
    "YieldFrom": "pl.yield_ hands values on from a loop body or branch",
}
