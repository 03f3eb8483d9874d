"""Nodes: what row-by-row ops compute, recorded until it is emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING

from tilewright.backends.cpu.compute.row_memory import Pass
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.recording import Recording
from tilewright.backends.cpu.emit.values import Node, Scalar, Tile
from tilewright.core.types import TileType
from tilewright.dtypes import INT32, DataType
from tilewright.native.llvm import I32, Builder, Value, i64
from tilewright.records import mutable

if TYPE_CHECKING:
    from tilewright.backends.cpu.compute.foldings import Extreme


MANY_OPS = 12
"""How many cheap ops take longer than a row takes to be stored and loaded."""


@mutable
class MapNode(Node):
    """A function of the same element of each operand."""

    function: Callable[..., Lanes] = field(kw_only=True)
    dear: bool = False


@mutable
class CheckedNode(Node):
    """A function of the same element of each operand that looks at those which are there, told where they stand."""

    function: Callable[..., Lanes] = field(kw_only=True)


@mutable
class IndexNode(Node):
    """The number of each column, or of the row they are in, as int32."""

    axis: int = -1
    extent: int = 0
    """How many there are: one is shared by all that it meets."""

    def numbers(self, b: Builder, here: Pass) -> Lanes:
        """Return the numbers of the columns being emitted, or that of their row, or a slower axis, in every lane."""
        if self.extent == 1:
            return Lanes(b, b.splat(Value(I32, "0"), here.count), INT32)
        index = here.column if self.axis == -1 else here.row.indices[self.axis + 1]
        lanes = b.splat(b.convert("trunc", index, I32), here.count)
        if self.axis == -1 and here.count > 1:
            each = ", ".join(f"i32 {number}" for number in range(here.count))
            lanes = b.op("add", lanes, Value(lanes.type, f"<{each}>"))
        return Lanes(b, lanes, INT32)


@mutable
class ColumnsNode(Node):
    """Columns of the only operand, all of them again and again or each several times: a power of two of them."""

    period: int = 0
    """After how many they are the same again; 0: never."""
    step: int = 1
    """How many in a row are the same."""

    @property
    def operand(self) -> Tile:
        """What has the columns."""
        (operand,) = self.operands
        assert isinstance(operand, Tile)
        return operand

    def taken(self, count: int) -> list[int]:
        """Return which of the operand's columns from `first` on are the next so many of its own."""
        return [lane % self.period if self.period else lane // self.step for lane in range(count)]

    def first(self, b: Builder, column: Value) -> Value:
        """Return which column of the operand is one of its own."""
        return b.op("and", column, i64(self.period - 1)) if self.period else b.op("sdiv", column, i64(self.step))


@mutable
class BytesNode(Node):
    """The bytes of the only operand's rows as elements of another type."""


@mutable
class RowsNode(Node):
    """Rows of a tensor that indices name, which whoever folds them reads where they lie."""

    dtype: DataType = field(kw_only=True)
    begin: Callable[[Value], Value] = field(kw_only=True)
    """Returns where the row of a number begins, whose elements are adjacent."""
    later: Callable[[Value], Value] = field(kw_only=True)
    """Returns where a row begins that is read a little later."""


@mutable
class ReduceNode(Node):
    """Each row of the operand folded to one element; the result is there from the next level on."""

    combine: Callable[[Lanes, Lanes], Lanes] = field(kw_only=True)
    start: float = field(kw_only=True)
    pair: Extreme | None = None
    """What folds several elements with fewer instructions than one after the other."""

    @property
    def operand(self) -> Tile:
        """What is folded."""
        (operand,) = self.operands
        assert isinstance(operand, Tile)
        return operand

    @property
    def ready(self) -> int:
        """The first pass in which the result can be used."""
        return self.level + 1


@mutable
class PickNode(Node):
    """The element of each row of the first operand whose number the second one has, zero where there is none."""

    first: int = 0
    """The number of the first element."""


@mutable
class SearchNode(ReduceNode):
    """The number of the first column in which `matches` holds; where it holds nowhere, a fold of all of them."""

    matches: Tile = field(kw_only=True)


@mutable
class TurnedNode(Node):
    """A matrix that lies on its side, read as it lies by the product that it belongs to."""

    @property
    def source(self) -> Tile:
        """The matrix as it lies."""
        (source,) = self.operands
        assert isinstance(source, Tile)
        return source


@mutable
class MaskedNode(Node):
    """Elements of a tensor that the only operand, a mask, admits; the others are a number, given by its bits."""

    source: Tile = field(kw_only=True)
    """What would be loaded without the mask."""
    other: int = field(kw_only=True)
    admit: Callable[[Lanes, Pass], Value] = field(kw_only=True)

    @property
    def mask(self) -> Tile:
        """What admits elements."""
        (mask,) = self.operands
        assert isinstance(mask, Tile)
        return mask


def mapped(
    e: Recording,
    type_: TileType,
    valid: tuple[Value, ...],
    function: Callable[..., Lanes],
    operands: Sequence[Tile | Scalar],
    dear: bool = False,
    *,
    goes_on: bool = False,
) -> Tile:
    """Record a function of the same element of each operand, one that `goes_on` after others of its statement."""
    node = MapNode(tuple(operands), function=function, dear=dear)
    return e.record(Tile(type_, valid, node=node), goes_on=goes_on)


def reached(
    tile: Tile, goes_on: Callable[[Tile], bool] = lambda tile: isinstance(tile.node, MapNode)
) -> Iterator[Tile]:
    """Yield a tile and what it is computed from, through those where it `goes_on`: each once, the first one first."""
    seen, left = set[int](), [tile]
    while left:
        tile = left.pop()
        if id(tile) in seen:
            continue
        seen.add(id(tile))
        yield tile
        if tile.node is not None and goes_on(tile):
            left += [operand for operand in reversed(tile.node.operands) if isinstance(operand, Tile)]


def is_dear(tile: Tile) -> bool:
    """Return whether computing a tile again costs more than storing a row of it."""
    return any(_is_dear_itself(each.node) for each in reached(tile, _is_made_again) if _is_made_again(each))


def is_long(tile: Tile) -> bool:
    """Return whether a tile takes so many ops to compute again that each pass over it had better load a row of it."""
    made = (each for each in reached(tile, _is_made_again) if _is_made_again(each))
    return sum(1 for _ in islice(made, MANY_OPS)) == MANY_OPS


def _is_dear_itself(node: Node | None) -> bool:
    return isinstance(node, CheckedNode) or (isinstance(node, MapNode) and node.dear)


def _is_made_again(tile: Tile) -> bool:
    """Return whether whoever reads a tile computes it; a column is computed once a row."""
    return tile.place is None and not tile.is_column and isinstance(tile.node, (MapNode, CheckedNode))
