"""Values: what the variables of a program are while its code is emitted."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from tilewright.core.expr import Var
from tilewright.core.types import ArrayType, TileType
from tilewright.dtypes import DataType
from tilewright.native.llvm import I64, Value
from tilewright.records import entity, mutable, record
from tilewright.source import UNKNOWN, Span


@record
class Scalar:
    """A number in a register; `reach` is the least and largest it can be, where the IR knows."""

    value: Value
    dtype: DataType
    reach: tuple[int, int] | None = None


@entity
class Tensor:
    """A strided view of memory; strides count elements. `root` is the same for views of one buffer."""

    pointer: Value
    shape: tuple[Value, ...]
    strides: tuple[Value, ...]
    valid: tuple[Value, ...]
    dtype: DataType
    root: object
    around: Value | None = None
    """Bytes of the memory that a window lies in, where it is one: of which its neighbours have the rest."""


@record
class Place:
    """Where a tile lies: an address and the distance between neighbours along each axis, in elements."""

    pointer: Value
    strides: tuple[int, ...]


@mutable
class Node:
    """A recorded computation of a tile, row by row. Its level is the pass over the columns in which it can run."""

    operands: tuple[Tile | Scalar, ...] = ()
    level: int = 0

    @property
    def ready(self) -> int:
        """The first pass in which the result can be used."""
        return self.level


@mutable
class LoadNode(Node):
    """Elements of a tensor from `offsets` on; its bytes may be other elements, `apart` from each other."""

    tensor: Tensor = field(kw_only=True)
    offsets: tuple[Value, ...] = field(kw_only=True)
    apart: Value | None = None
    backwards: bool = False
    """Whether its rows lie in memory from the last to the first, or their elements do."""
    strays: bool = False
    """Whether nobody knows which rows are loaded next."""


@record
class Part:
    """One of several tiles side by side: where it begins, and the box from there on in which it holds data."""

    start: Value
    box: tuple[Value, ...]


@record
class Joined:
    """What holds data of a tile that is made of others side by side along an axis, the first of which begins at 0."""

    axis: int
    """Which one, counted from the last."""
    parts: tuple[Part, ...]

    @property
    def starts(self) -> tuple[Value, ...]:
        """Where the parts begin."""
        return tuple(part.start for part in self.parts)


@mutable
class Tile:
    """A tile: how much of it is valid, and either the place that holds it or the node that computes it."""

    type: TileType
    valid: tuple[Value, ...]
    place: Place | None = None
    node: Node | None = None
    owners: list[Var] = field(default_factory=list[Var])
    defined: tuple[Value, ...] | None = None
    """The box in which it holds data; None: all of the valid part."""
    words: Value | None = None
    """Where a right operand lies in words, as products in a loop read it."""
    bits: Value | None = None
    """Of a packed mask: how many columns it has bits for."""
    written: Value | None = None
    """How many elements a created tile has been given, in parts."""
    is_scattered: Value | None = None
    """Whether some of them lie outside the box."""
    joined: Joined | None = None
    """The boxes in which it holds data, where it is made of tiles side by side."""
    is_made: Value | None = None
    """Whether it holds one number everywhere, or nothing, where that matters."""
    span: Span = UNKNOWN
    """Where the op was written that it is recorded for."""

    @property
    def is_column(self) -> bool:
        """Whether it has one element per row, so that a row of it is a scalar."""
        return self.type.shape[-1] == 1

    @property
    def rows(self) -> tuple[Value, ...]:
        """The valid extents of all axes but the last."""
        return self.valid[:-1]


@mutable
class Array:
    """A small array: where its elements lie, one after the other."""

    type: ArrayType
    pointer: Value
    owners: list[Var] = field(default_factory=list[Var])


Binding: TypeAlias = "Scalar | Tensor | Tile | Array | tuple[Binding, ...]"


def static(value: Value) -> int | None:
    """Return a constant's number, or None for what only the running program knows."""
    return int(value.ref) if value.type == I64 and value.ref.lstrip("-").isdigit() else None


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a packed row-major block."""
    strides: list[int] = []
    distance = 1
    for extent in reversed(shape):
        strides.append(distance)
        distance *= extent
    return tuple(reversed(strides))
