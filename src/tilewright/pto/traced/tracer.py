"""The tracer: one pass over a Python function that writes a PTO function.

A tracer holds what a place in the text can see. Values that Python knows stay Python values until an op needs them;
everything else is a `Value` of the module. What each kind of statement and expression means is registered by the
files that own it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

from tilewright.errors import KernelError, NestingError, OutOfScopeError, UndefinedNameError, UnsupportedFeatureError
from tilewright.frontend.capture import Captured, capture
from tilewright.frontend.names import Origins, Resolver, nearest
from tilewright.pto.module import Func
from tilewright.pto.traced.builder import Builder
from tilewright.pto.traced.names import Binding, read_after
from tilewright.pto.types import Type
from tilewright.source import Span

N = TypeVar("N", bound=ast.AST)


@dataclass(eq=False)
class Program:
    """What all the functions of one module share: the functions so far, and every value taken from outside."""

    target: str = "a5"
    origins: Origins = field(default_factory=Origins)
    resolvers: dict[FunctionType, Resolver] = field(default_factory=dict[FunctionType, Resolver])
    funcs: dict[tuple[int, tuple[Type, ...]], Func] = field(default_factory=dict[tuple[int, tuple[Type, ...]], Func])
    """The functions that bodies call, by the identity of their handle and the types they are called with."""
    calling: tuple[int, ...] = ()
    """The handles whose functions are being written."""
    kept: list[object] = field(default_factory=list[object])
    """The handles themselves, so that no other object gets their identity."""
    symbols: set[str] = field(default_factory=set[str])

    def symbol(self, name: str) -> str:
        """Return a name that no function of the module has, `name` itself where that is free."""
        numbered = (f"{name}_{number}" for number in range(1, len(self.symbols) + 2))
        found = name if name not in self.symbols else next(n for n in numbered if n not in self.symbols)
        self.symbols.add(found)
        return found

    def resolver(self, function: FunctionType, captured: Captured) -> Resolver:
        """Return the resolver that notes what a function reads."""
        if function not in self.resolvers:
            found = Resolver.of(function, origins=self.origins)
            found.captured = captured
            self.resolvers[function] = found
        return self.resolvers[function]


@dataclass(frozen=True)
class Returned:
    """A `return` that was reached: nothing after it runs."""

    value: object
    span: Span


@dataclass(eq=False)
class Tracer:
    """A place in a traced function: its text, its variables, and the function being written."""

    captured: Captured
    resolver: Resolver
    program: Program
    builder: Builder
    names: dict[str, Binding] = field(default_factory=dict[str, Binding])
    caller: Span | None = None
    inlining: tuple[FunctionType, ...] = ()
    """The functions whose text is being written out, the outermost first."""
    later: frozenset[str] = frozenset()
    """The variables that are read after the statement at hand, where that has a block."""
    region_depth: int = 0
    """How many run-time branches and loops the statement at hand lies in, within its own function."""

    @classmethod
    def of(cls, function: FunctionType, program: Program, builder: Builder) -> Tracer:
        """Return the tracer at the start of a function."""
        captured = text_of(function)
        return cls(captured, program.resolver(function, captured), program, builder, inlining=(function,))

    def span(self, node: ast.AST) -> Span:
        """Return where a piece of the function was written, and through which calls it was reached."""
        span = self.captured.span(node)
        return span if self.caller is None else span.called_from(self.caller)

    def execute(self, body: Sequence[ast.stmt], later: Iterable[str]) -> Returned | None:
        """Trace statements, after which `later` is read; return the `return` that ended them, if one did."""
        outer, after = self.later, read_after(body, later)
        for position, statement in enumerate(body):
            self.later = after.get(position, frozenset())
            returned = self._statement(statement)
            if returned is not None:
                return returned
        self.later = outer
        return None

    def _statement(self, node: ast.stmt) -> Returned | None:
        handler = _STATEMENTS.get(type(node))
        if handler is None:
            raise _unsupported(self, node)
        self.resolver.rest()
        try:
            return handler(self, node)
        except KernelError as error:
            error.locate([self.span(node)])
            raise
        except RecursionError:
            raise NestingError("this nests too deeply", spans=[self.span(node)]) from None

    def evaluate(self, node: ast.expr) -> Any:
        """Return what an expression stands for."""
        handler = _EXPRESSIONS.get(type(node))
        if handler is None:
            raise _unsupported(self, node)
        return handler(self, node)

    def bind(self, name: str, value: object, node: ast.AST) -> None:
        """Let a variable stand for a value."""
        self.builder.call_it(value, name)
        self.names[name] = Binding(value, self.span(node))

    def lookup(self, node: ast.Name) -> Any:
        """Return what a name stands for, in the function or outside it."""
        binding = self.names.get(node.id)
        if binding is not None:
            if binding.problem:
                raise OutOfScopeError(binding.problem, spans=[self.span(node)], help=binding.help)
            return binding.value
        try:
            return self.resolver.lookup(node.id)
        except KeyError:
            help = nearest(node.id, [*self.names, *self.resolver.visible()])
            help = help or "bind it before this line, or define it outside the kernel"
            message = f"name '{node.id}' is not defined"
            raise UndefinedNameError(message, spans=[self.span(node)], help=help) from None


def text_of(function: FunctionType) -> Captured:
    """Return the text of a function, which must be what Python compiled; pytest compiles assertions to its own."""
    captured = capture(function)
    has_assertions = any(isinstance(node, ast.Assert) for node in ast.walk(captured.node))
    return captured if has_assertions else capture(function, as_compiled=True)


_Statement: TypeAlias = Callable[[Tracer, Any], "Returned | None"]
_Expression: TypeAlias = Callable[[Tracer, Any], Any]
_STATEMENTS: dict[type[ast.AST], _Statement] = {}
_EXPRESSIONS: dict[type[ast.AST], _Expression] = {}


def statement(kind: type[N]) -> Callable[[Callable[[Tracer, N], Returned | None]], Callable[[Tracer, N], Any]]:
    """Register what a kind of statement does."""

    def register(handler: Callable[[Tracer, N], Returned | None]) -> Callable[[Tracer, N], Any]:
        _STATEMENTS[kind] = handler
        return handler

    return register


def expression(kind: type[N]) -> Callable[[Callable[[Tracer, N], Any]], Callable[[Tracer, N], Any]]:
    """Register what a kind of expression stands for."""

    def register(handler: Callable[[Tracer, N], Any]) -> Callable[[Tracer, N], Any]:
        _EXPRESSIONS[kind] = handler
        return handler

    return register


_HELP: dict[type[ast.AST], str] = {
    ast.Break: "let the bounds of the loop say where it ends, or use `while`",
    ast.Continue: "put the rest of the body under an `if`",
    ast.Try: "kernels raise nothing, so there is nothing to catch",
    ast.Raise: "use `assert` on values that are known at compile time",
    ast.FunctionDef: "define helpers outside the kernel: they are written out where they are called",
    ast.ClassDef: "define classes outside the kernel",
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
    ast.Lambda: "write a helper function outside the kernel",
    ast.ListComp: "write a loop over pto.static_range, or the elements themselves",
    ast.Global: "a kernel writes to memory through pointers, not to Python variables",
    ast.Nonlocal: "a kernel writes to memory through pointers, not to Python variables",
}


def _unsupported(t: Tracer, node: ast.AST) -> UnsupportedFeatureError:
    what = ast.unparse(node).partition("\n")[0]
    help = _HELP.get(type(node), "kernels have assignments, calls, `for`, `while`, `if`, `with` and `assert`")
    return UnsupportedFeatureError(f"a @pto.jit body has no `{what}`", spans=[t.span(node)], help=help)
