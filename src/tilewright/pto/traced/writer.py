"""Writers: one function of a PTO module while it is being written.

Constants are written once, at the start of the function, under names that say what they are. Other values take the
name of the Python variable they are bound to first; those that are never bound are numbered at the end.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from tilewright.pto.module import Attributes, Clause, Op, Region, Value
from tilewright.pto.text.literals import constant as held
from tilewright.pto.traced.values import is_sequence
from tilewright.pto.types import INDEX, Scalar, Type
from tilewright.source import UNKNOWN, Span

Mark: TypeAlias = tuple[dict[tuple[Scalar, str], Op], set[str], dict[str, int]]
"""The constants and names of a function at one moment."""


@dataclass(eq=False)
class Writer:
    """Ops in the order they are traced, with a fresh name for each value."""

    ops: list[Op] = field(default_factory=list[Op])
    """Where the next op goes."""
    constants: dict[tuple[Scalar, str], Op] = field(default_factory=dict[tuple[Scalar, str], Op])
    taken: set[str] = field(default_factory=set[str])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """How many values wanted each name."""
    never_negative: set[Value] = field(default_factory=set[Value])
    """The integers that are known to be zero or more."""
    folds: dict[Value, list[Op] | Value] = field(default_factory=dict[Value, "list[Op] | Value"])
    """The registers that may stand for numbers: the ops that they were made among, or the number once it was needed."""

    def emit(self, op: Op) -> Op:
        """Add an op."""
        self.ops.append(op)
        return op

    def value(
        self,
        name: str,
        operands: Iterable[Value],
        type: Type,
        span: Span,
        attributes: Attributes | None = None,
        clauses: Iterable[Clause] = (),
    ) -> Value:
        """Add an op with one result; return that."""
        result = Value("", type, span)
        self.emit(Op(name, tuple(operands), tuple(clauses), attributes or {}, (result,), span=span))
        return result

    def constant(self, value: bool | int | float, type: Scalar, span: Span = UNKNOWN) -> Value:
        """Return a constant of the function."""
        value = held(value, type)
        key = type, repr(value)
        known = self.constants.get(key)
        if known is None:
            result = Value(self.fresh(_constant_name(value, type)), type, span)
            known = Op("arith.constant", attributes={"value": value}, results=(result,), span=span)
            self.constants[key] = known
            if value >= 0:
                self.never_negative.add(result)
        return known.results[0]

    def mark(self) -> Mark:
        """Return what there is to come back to."""
        return dict(self.constants), set(self.taken), dict(self.counts)

    def reset(self, mark: Mark) -> None:
        """Forget the names and constants of ops that were thrown away."""
        constants, taken, counts = mark
        self.constants, self.taken, self.counts = dict(constants), set(taken), dict(counts)

    def fresh(self, hint: str) -> str:
        """Return a name that no value has yet, `hint` itself where that is free."""
        name, count = hint, self.counts.get(hint, 0)
        while name in self.taken:
            count += 1
            name = f"{hint}_{count}"
        self.taken.add(name)
        self.counts[hint] = count
        return name

    def call_it(self, value: object, hint: str) -> None:
        """Give a value the name of the variable it is bound to, unless it has one."""
        if isinstance(value, Value) and not value.name:
            value.name = self.fresh(hint)
        elif is_sequence(value):
            for position, part in enumerate(value):
                self.call_it(part, f"{hint}_{position}")

    @contextmanager
    def region(self, arguments: tuple[Value, ...] = ()) -> Generator[Region, None, None]:
        """Let ops go into a new region for a while."""
        inner, outer = Region(arguments), self.ops
        self.ops = inner.ops
        try:
            yield inner
        finally:
            self.ops = outer

    def body(self, arguments: tuple[Value, ...]) -> Region:
        """Return the finished function body, every value named."""
        ops = [*self.constants.values(), *self.ops]
        unnamed = [value for op in ops for inner in op.walk() for value in _defined(inner) if not value.name]
        for number, value in enumerate(unnamed):
            value.name = str(number)
        return Region(arguments, ops)


def _defined(op: Op) -> Iterable[Value]:
    yield from op.results
    for region in op.regions:
        yield from region.arguments


def _constant_name(value: bool | int | float, type: Scalar) -> str:
    """Return what a constant is called: `c8`, `c8_i32`, `cst` for numbers that are no word."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "cst" if type.name == "f32" else f"cst_{type.name}"
    digits = f"n{-value}" if value < 0 else str(value)
    return f"c{digits}" if type is INDEX else f"c{digits}_{type.name}"
