"""The walker: one pass over a Python function's text, for any language that is written so.

What Python knows stays a Python value until something needs it; everything else is a *run-time value* of the language.
The walk itself (names, operators, attributes, items, assignments, which branch is taken) is the same for all of them.
What comes out is a *builder's* business: each language derives one from `Walker`, and the walk asks it for a binary
operation, a comparison, a branch, a loop, an assignment to an item. A builder is put together from functions of the
files that know the answers.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, replace
from types import FunctionType, ModuleType
from typing import Any, ClassVar, TypeAlias, TypeVar

from tilewright.errors import KernelError, RecursiveCallError
from tilewright.frontend.capture import Captured
from tilewright.frontend.names import Resolver
from tilewright.frontend.walk.bindings import Binding
from tilewright.records import mutable
from tilewright.source import Span

Value: TypeAlias = Any
"""What an expression gives: a run-time value, or a Python value the compiler knows."""


class Listed(tuple[Any, ...]):
    """A list as kernels have it: what it holds is fixed, as in a tuple, yet Python would not take one for the other."""

    CHANGED_BY = ("append", "clear", "extend", "insert", "pop", "reverse")
    """The methods that change one in place."""


W = TypeVar("W", bound="Walker")
E = TypeVar("E", bound=KernelError)
Handler: TypeAlias = Callable[[Any, Any], Any]
DEEPEST = 32
"""How often a function may be written out inside itself: each time takes a part of Python's own stack."""


@mutable
class Walker(ABC):
    """A place in a function's text, and what the language builds there."""

    _: KW_ONLY
    captured: Captured
    resolver: Resolver
    caller: Span | None = None
    """The call through which this text was reached."""
    inlining: tuple[FunctionType, ...] = ()
    """The functions whose text is being written out, the outermost first."""

    runtime: ClassVar[type]
    """The run-time values of the language."""
    syntax: ClassVar[Mapping[type[ast.AST], Handler]]
    """What the walk does at each kind of syntax: what all languages share, and what this one has of its own."""
    listed: ClassVar[Callable[[Sequence[Value]], tuple[Value, ...]]] = Listed
    """What a list becomes."""
    short_circuits: ClassVar[bool] = True
    """Whether what an `and` or `or` does not need is left unread."""
    namespaces: ClassVar[tuple[type, ...]] = (ModuleType,)
    """What has ops as its attributes."""
    targets: ClassVar[tuple[type[ast.expr], ...]] = (ast.Name,)
    """What `+=` can change."""

    def span(self, node: ast.AST) -> Span:
        """Return where a piece of syntax was written, seen through the inlined call it came from.

        What this package itself writes out stands where the author calls it.
        """
        if self.caller is not None and self.captured.is_ours:
            return self.caller
        span = self.captured.span(node)
        return span if self.caller is None else span.called_from(self.caller)

    def error(self, kind: type[E], node: ast.AST, message: str, *, help: str = "", notes: Sequence[str] = ()) -> E:
        """Return the error for a mistake in a piece of syntax."""
        return kind(message, spans=[self.span(node)], help=help, notes=notes)

    def entered(self: W, function: FunctionType, captured: Captured, resolver: Resolver, node: ast.Call) -> W:
        """Return the walker at the start of a function that a call writes out in place."""
        inlining = (*self.inlining, function)
        if function in self.inlining and not _may_end(captured):
            cycle = " -> ".join(each.__name__ for each in inlining)
            raise self.error(RecursiveCallError, node, f"`{function.__name__}` calls itself: {cycle}")
        if self.inlining.count(function) == DEEPEST:
            message = f"`{function.__name__}` calls itself {DEEPEST} times over, and nothing that is known ends it"
            help = "let a number that is known while compiling decide when it returns, or use a loop"
            raise RecursiveCallError(message, spans=[self.captured.span(node)], help=help)
        return replace(self, captured=captured, resolver=resolver, caller=self.span(node), inlining=inlining)

    def evaluate(self, node: ast.expr) -> Value:
        """Return what an expression gives."""
        handler = self.syntax.get(type(node))
        if handler is None:
            raise self.unsupported(node)
        return handler(self, node)

    def execute(self, body: Sequence[ast.stmt]) -> None:
        """Walk statements in order."""
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Walk one statement."""
        handler = self.syntax.get(type(node))
        if handler is None:
            raise self.unsupported(node)
        handler(self, node)

    def operand(self, node: ast.expr) -> Value:
        """Return what an expression gives, as something an operation can take."""
        return self.evaluate(node)

    def placed(self, value: Value, node: ast.AST) -> Value:
        """Return a value as something that can be used more than once."""
        return value

    def computes(self, value: Value) -> bool:
        """Return whether operators on a value are the language's: those of run-time values, and of typed numbers."""
        return isinstance(value, self.runtime)

    def is_runtime(self, value: Value) -> bool:
        """Return whether a value cannot be compared before the program runs."""
        return isinstance(value, self.runtime)

    @abstractmethod
    def find(self, name: str) -> Binding | None:
        """Return what a name is bound to in the function, or None."""

    def read(self, node: ast.Name, binding: Any) -> Value:
        """Return the value of a name that the function has bound."""
        return binding.value

    @abstractmethod
    def bound_names(self) -> list[str]:
        """Return the names that are bound here."""

    def met(self, node: ast.Name, value: Value) -> Value:
        """Return what a name from outside stands for, noted where the language must know of it."""
        return value

    @abstractmethod
    def bind(self, /, target: ast.Name, value: Value, source: ast.expr) -> None:
        """Let a name stand for what `source` gave."""

    def write(self, /, target: ast.Subscript, value: Value, source: ast.expr) -> None:
        """Assign to an item."""
        raise self.unassignable(target)

    def changes(self, /, target: ast.Subscript, value: ast.expr) -> bool:
        """Walk an assignment to an item that is made of what is there; return whether it is one of the language's."""
        return False

    def updated(self, /, target: ast.Subscript, both: ast.BinOp) -> Value:
        """Return what an item becomes that an operator and a value change, read and combined with that in `both`."""
        return self.evaluate(both)

    def parts(self, /, value: Value, source: ast.expr, count: int) -> Value:
        """Return what so many names share, a tuple where it has parts."""
        return value

    def apart(self, /, value: Value, source: ast.expr) -> Value:
        """Return one of several values that are bound at once, which binding the others cannot change."""
        return value

    def takes(self, /, node: ast.Expr | ast.Assign) -> bool:
        """Walk a statement that is a directive rather than an expression; return whether it is one."""
        return False

    def effect(self, /, node: ast.Expr) -> None:
        """Walk an expression that stands alone."""
        self.evaluate(node.value)

    @abstractmethod
    def binary(self, /, operator: ast.operator, lhs: Value, rhs: Value, node: ast.BinOp) -> Value:
        """Return an operator applied to two values, one of them at least a run-time value."""

    @abstractmethod
    def unary(self, /, operator: ast.unaryop, value: Value, node: ast.UnaryOp) -> Value:
        """Return an operator applied to a run-time value."""

    def check_comparison(self, /, node: ast.Compare) -> None:
        """Raise for comparisons that the language does not have even between known values."""
        return None

    @abstractmethod
    def compare(self, /, operator: ast.cmpop, lhs: Value, rhs: Value, node: ast.Compare) -> Value:
        """Return a comparison of two values, one of them at least a run-time value."""

    @abstractmethod
    def logical(self, /, is_and: bool, lhs: Value, rhs: Value, node: ast.expr, where: ast.expr) -> Value:
        """Return `and` or `or` of two values, one of them at least a run-time value, the second from `where`."""

    @abstractmethod
    def select(self, /, condition: Value, node: ast.IfExp) -> Value:
        """Return one of two values, as a run-time condition says."""

    @abstractmethod
    def attribute(self, /, owner: Value, node: ast.Attribute) -> Value:
        """Return an attribute of a run-time value."""

    @abstractmethod
    def index(self, /, value: Value, node: ast.expr) -> Value:
        """Return what a Python container is indexed by; an error where that is a run-time value."""

    @abstractmethod
    def subscript(self, /, owner: Value, node: ast.Subscript) -> Value:
        """Return an item or a window of a run-time value."""

    @abstractmethod
    def describe(self, /, value: Value) -> str:
        """Return what a value is, as messages say it."""

    def show(self, /, value: Value) -> str:
        """Return a value as text that has it inside writes it."""
        return value if isinstance(value, str) else self.describe(value)

    @abstractmethod
    def condition(self, /, node: ast.expr) -> Value:
        """Return what decides a branch or a loop, a bool where it is known; ConditionError for other values."""

    def taken(self, /, body: Sequence[ast.stmt]) -> None:
        """Walk the branch that a known condition takes."""
        self.execute(body)

    @abstractmethod
    def branch(self, /, condition: Value, node: ast.If) -> None:
        """Walk both sides of an `if` that is decided at run time, and merge what they bind."""

    def missing(self, owner: Value, node: ast.Attribute) -> str:
        """Return what to write instead of an attribute that `owner` does not have, or nothing."""
        return ""

    @abstractmethod
    def unsupported(self, node: ast.AST) -> KernelError:
        """Return the error for syntax that the language does not have."""

    @abstractmethod
    def unassignable(self, target: ast.expr) -> KernelError:
        """Return the error for an assignment to what is neither a name nor an item."""


def _may_end(captured: Captured) -> bool:
    """Return whether a function that calls itself decides something, and so may decide not to."""
    return any(isinstance(node, (ast.If, ast.IfExp)) for node in ast.walk(captured.node))
