"""PTO modules: functions of ops over values, each with its place in the text.

An op keeps its operands where its text has them: positional ones in `operands`, keyworded and parenthesized ones
(`ins(...)`, `outs(...)`, `addr = %a`, `shape = [...]`, `nburst(...)`) in `clauses`, in order. Values are compared
by identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.types import Type
from tilewright.records import record
from tilewright.source import UNKNOWN, Source, Span


@record
class Enumerated:
    """A word of a PTO enumeration: `#pto.pipe<PIPE_ALL>`, `#pto<cmp lt>`, or `<PIPE_ALL>` with the family elided."""

    family: str
    word: str


def word_of(value: object) -> str:
    """Return the word of an enumeration however it is spelled."""
    return value.word if isinstance(value, Enumerated) else str(value)


@record
class Number:
    """A number with its type, as in `4 : i64`."""

    value: int | float
    type: Type


@record
class SymbolRef:
    """The name of a function, as in `@helper`."""

    name: str


T = TypeVar("T", bound=Type)

Attribute: TypeAlias = (
    "None | bool | int | float | str | Enumerated | Number | SymbolRef | Type | tuple[Attribute, ...]"
)
"""A static value on an op, function or module; None is a unit attribute."""
Attributes: TypeAlias = Mapping[str, Attribute]


@dataclass(eq=False, slots=True)
class Value:
    """A result of an op, or an argument of a region or function; `name` has no `%`."""

    name: str
    type: Type
    span: Span = UNKNOWN

    def of(self, kind: type[T]) -> T:
        """Return its type, of a kind; PtoTypeMismatchError where a form that takes any was given another."""
        if not isinstance(self.type, kind):
            raise PtoTypeMismatchError(f"`%{self.name}` is {self.type}, where a {kind.__name__.lower()} is taken")
        return self.type


class Constants(dict[Value, int]):
    """What values are that a constant defines, and whose rules hold: those of `a3` or `a5`, or of no machine."""

    arch = ""
    said = ""
    """The architecture as the text has it."""
    given: tuple[Value, ...] = ()
    """What the function is given."""


@dataclass(slots=True)
class Clause:
    """Operands under a word, as in `outs(%d : T)` or `strides = [%a, %b]`."""

    name: str
    values: tuple[Value, ...]
    span: Span = UNKNOWN


@dataclass(eq=False, slots=True)
class Region:
    """Ops in order, with the arguments they start from (a loop's variable first)."""

    arguments: tuple[Value, ...] = ()
    ops: list[Op] = field(default_factory=list["Op"])


@dataclass(eq=False, slots=True)
class Op:
    """One operation."""

    name: str
    operands: tuple[Value, ...] = ()
    clauses: tuple[Clause, ...] = ()
    attributes: Attributes = field(default_factory=dict[str, Attribute])
    results: tuple[Value, ...] = ()
    regions: tuple[Region, ...] = ()
    span: Span = UNKNOWN

    def clause(self, name: str) -> tuple[Value, ...] | None:
        """Return the values under `name`, or None where the op has no such clause."""
        for clause in self.clauses:
            if clause.name == name:
                return clause.values
        return None

    @property
    def ins(self) -> tuple[Value, ...]:
        """What a tile op reads."""
        return self.clause("ins") or ()

    @property
    def outs(self) -> tuple[Value, ...]:
        """What a tile op writes."""
        return self.clause("outs") or ()

    @property
    def uses(self) -> tuple[Value, ...]:
        """Every operand, positional ones first."""
        if not self.clauses:
            return self.operands
        return (*self.operands, *[value for clause in self.clauses for value in clause.values])

    def walk(self) -> Iterator[Op]:
        """Yield this op and everything inside it, in order."""
        yield self
        for region in self.regions:
            for op in region.ops:
                yield from op.walk()


def cases_of(op: Op) -> tuple[int, ...]:
    """Return the numbers that the regions of an `scf.index_switch` are for, the last of which is for all others."""
    cases = op.attributes["cases"]
    assert isinstance(cases, tuple)
    return tuple(case for case in cases if isinstance(case, int))


@dataclass(eq=False, slots=True)
class Func:
    """A function; one without a body is a declaration."""

    name: str
    arguments: tuple[Value, ...] = ()
    results: tuple[Type, ...] = ()
    attributes: Attributes = field(default_factory=dict[str, Attribute])
    body: Region | None = None
    private: bool = False
    span: Span = UNKNOWN


@dataclass(eq=False, slots=True)
class Module:
    """Functions and nested modules, in the order they were written."""

    items: list[Func | Module] = field(default_factory=list["Func | Module"])
    attributes: Attributes = field(default_factory=dict[str, Attribute])
    name: str | None = None
    span: Span = UNKNOWN
    source: Source | None = None
    text: str = ""
    """The text it was read from, as it was."""

    def __str__(self) -> str:
        """Return the text it was read from; `repr` has its parts."""
        return self.text or repr(self)

    def funcs(self) -> Iterator[Func]:
        """Yield every function, those of nested modules included."""
        for item in self.items:
            if isinstance(item, Module):
                yield from item.funcs()
            else:
                yield item

    def scopes(self, outer: Mapping[str, Func] | None = None) -> Iterator[tuple[Func, dict[str, Func]]]:
        """Yield every function with those it can call: its module's, then those of the modules around it."""
        functions = {**(outer or {}), **{item.name: item for item in self.items if isinstance(item, Func)}}
        for item in self.items:
            if isinstance(item, Module):
                yield from item.scopes(functions)
            else:
                yield item, functions
