"""The kernel builder: what the walk over a kernel's text asks for, as IR."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import ClassVar

from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.frontend import (
    branches,
    calls,
    choices,
    dicts,
    invocations,
    loops,
    operators,
    picks,
    properties,
    scopes,
    statements,
    static_calls,
    subscripts,
    unrolled_loops,
    updates,
    writes,
)
from tilewright.frontend.foreign import meant
from tilewright.frontend.names import is_ours
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.expressions import EXPRESSIONS
from tilewright.frontend.walk.statements import STATEMENTS
from tilewright.frontend.walk.walker import Handler, Value


class KernelBuilder(Translator):
    """The walk over a kernel, whose values are expressions of the IR."""

    syntax: ClassVar[Mapping[type[ast.AST], Handler]] = {
        **EXPRESSIONS,
        **STATEMENTS,
        ast.AnnAssign: statements.annotated,
        ast.Assert: static_calls.assert_,
        ast.Break: statements.exit_loop,
        ast.Call: calls.call,
        ast.Continue: statements.exit_loop,
        ast.Dict: dicts.literal,
        ast.For: loops.loop,
        ast.GeneratorExp: unrolled_loops.comprehension,
        ast.ListComp: unrolled_loops.comprehension,
        ast.Return: statements.return_,
        ast.While: loops.repeat,
        ast.With: scopes.scope,
    }
    bind = statements.bind
    write = writes.write
    changes = picks.masked_change
    updated = updates.updated
    parts = invocations.parts
    takes = statements.takes
    effect = statements.effect
    binary = operators.binary
    unary = operators.unary
    check_comparison = operators.check_comparison
    compare = operators.compare
    logical = operators.logical
    select = choices.select
    attribute = properties.attribute
    index = subscripts.index
    subscript = subscripts.subscript
    condition = branches.condition
    taken = branches.taken
    branch = branches.branch

    def describe(self, value: Value) -> str:
        """Return what a value is, as messages say it."""
        return str(value.type) if isinstance(value, Expr) else repr(value)

    def show(self, value: Value) -> str:
        """Return a value as texts write it."""
        return static_calls.show(value)

    def missing(self, owner: Value, node: ast.Attribute) -> str:
        """Return what the language has for a name of another library's."""
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
