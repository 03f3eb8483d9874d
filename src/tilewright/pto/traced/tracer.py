"""The tracer: the walk over a `@pto.jit` body, which writes a PTO function as it goes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from tilewright.errors import KernelError, NestingError
from tilewright.frontend.capture import Captured, capture
from tilewright.frontend.names import Origins, Resolver, free_name
from tilewright.frontend.walk.bindings import Binding
from tilewright.frontend.walk.walker import Walker
from tilewright.pto.module import Func, Value
from tilewright.pto.traced.liveness import closed_over, read_after
from tilewright.pto.traced.values import Handle, Lanes, describe, is_runtime
from tilewright.pto.traced.writer import Writer
from tilewright.source import Span

T = TypeVar("T", bound="Tracer")


@dataclass(eq=False)
class Program:
    """What all the functions of one module share: the functions so far, and every value taken from outside."""

    target: str = "a5"
    origins: Origins = field(default_factory=Origins)
    resolvers: dict[FunctionType, Resolver] = field(default_factory=dict[FunctionType, Resolver])
    funcs: dict[tuple[int, tuple[object, ...]], Func] = field(
        default_factory=dict[tuple[int, tuple[object, ...]], Func]
    )
    """The functions that bodies call, by the identity of their handle and what they are called with."""
    calling: tuple[int, ...] = ()
    """The handles whose functions are being written."""
    kept: list[object] = field(default_factory=list[object])
    """The handles themselves, so that no other object gets their identity."""
    symbols: set[str] = field(default_factory=set[str])
    inside: str = ""
    """The kind of the sub-kernel that is being written out, "" outside of them."""

    def symbol(self, name: str) -> str:
        """Return a name that no function of the module has, `name` itself where that is free."""
        found = free_name(name, self.symbols)
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


@dataclass(eq=False, kw_only=True)
class Tracer(Walker):
    """A place in a traced function: its text, its variables, and the function being written."""

    program: Program
    writer: Writer = field(default_factory=Writer)
    names: dict[str, Binding] = field(default_factory=dict[str, Binding])
    later: frozenset[str] = frozenset()
    """The variables that are read after the statement at hand, where that has a block."""
    region_depth: int = 0
    """How many run-time branches and loops the statement at hand lies in, within its own function."""
    returned: Returned | None = None
    """The `return` that was reached, if one was."""
    bodies: int = 0
    """How many bodies of statements the statement at hand lies in, within its own function."""
    exits: int = 0
    """How many of them are sides of branches that the function ends with, since some path returns from there."""
    doubled: int = 0
    """On how many of those branches both sides go on."""
    rest: Sequence[ast.stmt] = ()
    """The statements behind the one at hand, in its own body."""
    yields_to: Handle | None = None
    """The loop or branch that the statement at hand lies in, where it is one that is named."""

    runtime: ClassVar[type] = Value
    listed: ClassVar[Callable[[Sequence[Any]], tuple[Any, ...]]] = tuple  # bodies do not tell lists and tuples apart

    @classmethod
    def of(cls: type[T], function: FunctionType, program: Program) -> T:
        """Return the tracer at the start of a function."""
        captured = text_of(function)
        resolver = program.resolver(function, captured)
        return cls(captured=captured, resolver=resolver, program=program, inlining=(function,))

    @property
    def unseen(self) -> frozenset[str]:
        """The variables that calls of nested functions may read."""
        return closed_over(self.captured.node)

    def execute(self, body: Sequence[ast.stmt], again: frozenset[str] = frozenset()) -> None:
        """Trace statements up to a `return`; where a loop repeats them, `again` is read after them, too."""
        outer, after = (self.later, self.rest), read_after(body, self.later | again | self.unseen)
        self.bodies += 1
        for position, node in enumerate(body):
            if self.returned is not None:
                break
            self.later, self.rest = after.get(position, frozenset()), body[position + 1 :]
            self.statement(node)
        self.bodies -= 1
        self.later, self.rest = outer

    def begin(self) -> None:
        """Let what is traced next be a function of its own, which shares nothing with the one that calls it."""
        self.later, self.rest, self.returned = frozenset(), (), None
        self.region_depth = self.bodies = self.exits = self.doubled = 0

    def statement(self, node: ast.stmt) -> None:
        """Trace one statement."""
        self.resolver.rest()
        try:
            super().statement(node)
        except KernelError as error:
            error.locate([self.span(node)])
            raise
        except RecursionError:
            raise self.error(NestingError, node, "this nests too deeply") from None

    def computes(self, value: object) -> bool:
        """Return whether operators on a value are ops: those of values, and of lanes of them."""
        return isinstance(value, (Value, Lanes))

    def is_runtime(self, value: object) -> bool:
        """Return whether a value, or a part of it, is only known when the kernel runs."""
        return is_runtime(value)

    def describe(self, value: object) -> str:
        """Return what a value is, as messages say it."""
        return describe(value)

    def let(self, name: str, value: object, node: ast.AST) -> None:
        """Let a variable stand for a value."""
        self.writer.call_it(value, name)
        self.names[name] = Binding(value, self.span(node))

    def find(self, name: str) -> Binding | None:
        """Return what a name stands for in the function, or None."""
        return self.names.get(name)

    def bound_names(self) -> list[str]:
        """Return the names that are bound here."""
        return list(self.names)


def text_of(function: FunctionType) -> Captured:
    """Return the text of a function, which must be what Python compiled; pytest compiles assertions to its own."""
    captured = capture(function)
    has_assertions = any(isinstance(node, ast.Assert) for node in ast.walk(captured.node))
    return captured if has_assertions else capture(function, as_compiled=True)
