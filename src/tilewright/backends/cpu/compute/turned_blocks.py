"""Turned blocks: square blocks of elements in vectors, whose columns become rows.

Squares that fit the 16 bytes of a register's lane are turned first, in all lanes at once, then whole lanes change
places: each step is one instruction of every processor. LLVM looks through chains of such steps for shorter ones, in
vain and for long: what turns rows of bfloat16 for an Emerald Rapids takes 139 ms to compile where it sees all of them,
and 53 where it does not see behind the squares and what they are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.native.llvm import Builder, Value, element, lanes, vector

LANE = 128
"""Bits of a register's lane, in which elements of two vectors are mixed."""


def turned_block(b: Builder, columns: Sequence[Value]) -> list[Value]:
    """Return the rows of a square block given by its columns."""
    side = len(columns)
    square = min(side, LANE // int(element(columns[0].type)[1:]))
    given = [_fenced(b, column) for column in columns]
    squares = [_turned_in_lanes(b, given[at : at + square], square) for at in range(0, side, square)]
    groups = [[_fenced(b, each) for each in group] for group in squares]
    alike = [_turned_lanes(b, group, square) for group in zip(*groups, strict=True)]
    return [row for rows in zip(*alike, strict=True) for row in rows]


def _turned_in_lanes(b: Builder, vectors: Sequence[Value], square: int, unit: int = 1) -> list[Value]:
    """Return vectors whose lanes hold the columns of the squares that were in the same lanes of those given.

    Units of so many elements of two vectors take turns, those of the first half of each lane and those of the second.
    """
    if len(vectors) == 1:
        return [*vectors]
    places = range(lanes(vectors[0].type))
    halves = [[at for at in places if at % square * 2 // square == half] for half in range(2)]
    found: list[Value] = []
    for half in halves:
        units = [half[at : at + unit] for at in range(0, len(half), unit)]
        mixed = [place for own in units for place in (*own, *(at + len(places) for at in own))]
        found += _turned_in_lanes(b, _mixed(b, vectors, mixed), square, 2 * unit)
    return found


def _turned_lanes(b: Builder, vectors: Sequence[Value], square: int) -> list[Value]:
    """Return vectors of which each has the lanes that were in one place of all those given."""
    if len(vectors) == 1:
        return [*vectors]
    count = lanes(vectors[0].type)
    ways: list[list[Value]] = []
    for odd in range(2):
        own = [at for at in range(count) if at // square % 2 == odd]
        ways.append(_turned_lanes(b, _mixed(b, vectors, [*own, *(at + count for at in own)]), square))
    return [row for rows in zip(*ways, strict=True) for row in rows]


def _mixed(b: Builder, vectors: Sequence[Value], places: Sequence[int]) -> list[Value]:
    """Emit the elements in some places of each two vectors."""
    mask = ", ".join(f"i32 {place}" for place in places)
    type_ = vectors[0].type
    return [
        b.value(type_, f"shufflevector {low}, {high}, <{lanes(type_)} x i32> <{mask}>")
        for low, high in zip(vectors[::2], vectors[1::2], strict=True)
    ]


def _fenced(b: Builder, value: Value) -> Value:
    """Emit a value that LLVM does not look behind."""
    bits = lanes(value.type) * int(element(value.type)[1:])
    floats = vector("float", bits // 32)
    return b.convert("bitcast", b.intrinsic("llvm.arithmetic.fence", b.convert("bitcast", value, floats)), value.type)
