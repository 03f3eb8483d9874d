"""Pieces: what has been read of an op, and the lists of operands it is read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tilewright.pto.module import Attribute, Clause, Op, Value
from tilewright.pto.text.attributes import SEGMENTS
from tilewright.pto.text.cursor import Cursor
from tilewright.pto.text.form import Form
from tilewright.pto.text.kinds import signature
from tilewright.pto.text.rules import refuse_counts
from tilewright.pto.types import Type

Names: TypeAlias = Sequence[tuple[str, int]]
"""The names of results, each with its token."""
Placed: TypeAlias = tuple[Value, int]
"""A value and the token that uses it."""


@dataclass(slots=True)
class Head:
    """An op as its text begins: what it is called and what its results are called."""

    name: str
    form: Form
    names: Names
    at: int
    """The token of its name."""


class Pieces:
    """What has been read of an op so far."""

    __slots__ = ("attributes", "clauses", "operands", "places", "slots", "untyped")

    def __init__(self, operands: Sequence[Value] = (), attributes: Mapping[str, Attribute] | None = None) -> None:
        self.operands = [*operands]
        self.places: list[int] = []
        self.clauses: list[Clause] = []
        self.attributes: dict[str, Attribute] = {**attributes} if attributes else {}
        self.slots = 0
        self.untyped: list[tuple[Value, int, bool]] = []
        """Values whose types come after the colon, their tokens, and whether they stand in brackets."""


def finished(cursor: Cursor, head: Head, pieces: Pieces, types: list[Type]) -> Op:
    """Return the op made of `pieces`, once its counts fit its form."""
    span = cursor.span(head.at)
    pieces.attributes.pop(SEGMENTS, None)
    if len(types) < signature(head.form.results).count[0]:
        raise cursor.unexpected(f"`->` and the types of what `{head.name}` gives")
    results = cursor.bind(head.names, types, head.at)
    op = Op(head.name, tuple(pieces.operands), tuple(pieces.clauses), pieces.attributes, results, (), span)
    refuse_counts(op, head.form)
    return op


def operands_in(cursor: Cursor, opening: str, closing: str) -> list[Placed]:
    """Return the values between `opening` and `closing`, each with its token."""
    cursor.expect(opening)
    return [(cursor.value(), at) for at in cursor.items(closing, f"`,` or `{closing}`")]


def values_of(placed: Sequence[Placed]) -> tuple[Value, ...]:
    """Return the values without their tokens."""
    return tuple([value for value, _ in placed])


def check_each(cursor: Cursor, placed: Sequence[Placed]) -> list[Type]:
    """Read one type for each value, separated by commas, and return the types."""
    for i, (value, at) in enumerate(placed):
        if i and not cursor.accept(","):
            raise cursor.unexpected(f"`,` and the type of `%{value.name}`")
        cursor.check(value, at)
    return [value.type for value, _ in placed]


def check_enclosed(cursor: Cursor, placed: Sequence[Placed]) -> list[Type]:
    """Read one type for each value in parentheses, or without them where there is one, and return the types."""
    if not cursor.accept("("):
        return check_each(cursor, placed)
    types = check_each(cursor, placed)
    if not cursor.accept(")"):
        raise cursor.unexpected(f"`)` after the types of {len(placed)} values")
    return types
