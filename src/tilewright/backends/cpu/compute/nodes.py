"""Nodes: what is recorded of row-by-row ops until they are emitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.host.values import Place, Scalar, Tensor, Tile
from tilewright.native.llvm import Value


@dataclass(eq=False)
class Node:
    """A recorded computation. Its level is the pass over the columns in which it can run."""

    level: int = 0


@dataclass(eq=False)
class LoadNode(Node):
    """Elements of a tensor from `offsets` on."""

    tensor: Tensor = field(kw_only=True)
    offsets: tuple[Value, ...] = field(kw_only=True)


@dataclass(eq=False)
class MapNode(Node):
    """A function of the same element of each operand."""

    function: Callable[..., Lanes] = field(kw_only=True)
    operands: tuple[Tile | Scalar, ...] = field(kw_only=True)
    dear: bool = False
    depth: int = 0
    """How many functions are applied to each other to compute it."""


@dataclass(eq=False)
class ReduceNode(Node):
    """Each row folded to one element; the result is there from the next level on."""

    operand: Tile = field(kw_only=True)
    combine: Callable[[Lanes, Lanes], Lanes] = field(kw_only=True)
    start: Any = field(kw_only=True)


@dataclass(eq=False)
class Sink:
    """Something done with a tile's elements in the pass of their level."""

    tile: Tile


@dataclass(eq=False)
class StoreSink(Sink):
    """Elements written to a tensor from `offsets` on; `add` accumulates, `atomic` while other threads do so too.

    Where `fits` does not hold an error has been noted, and the whole group is skipped.
    """

    tensor: Tensor = field(kw_only=True)
    offsets: tuple[Value, ...] = field(kw_only=True)
    add: bool = False
    atomic: bool = False
    fits: Value | None = None


@dataclass(eq=False)
class SaveSink(Sink):
    """Elements written to a place of the arena; `rows` says whether every row has its own part of it."""

    place: Place = field(kw_only=True)


@dataclass
class Group:
    """Recorded ops that share their rows."""

    rows: tuple[Value, ...]
    tiles: list[Tile] = field(default_factory=list[Tile])
    stores: list[StoreSink] = field(default_factory=list[StoreSink])


def level_of(value: Tile | Scalar) -> int:
    """Return the first pass in which a value can be used."""
    if isinstance(value, Scalar) or value.node is None:
        return 0
    return value.node.level + isinstance(value.node, ReduceNode)


def depth_of(value: Tile | Scalar) -> int:
    """Return how many functions are applied to each other where a value is computed, not read."""
    node = None if isinstance(value, Scalar) or value.place is not None else value.node
    return node.depth if isinstance(node, MapNode) else 0


def operands_of(tile: Tile) -> list[Tile]:
    """Return the tiles that a recorded one is computed from."""
    node = tile.node
    if isinstance(node, MapNode):
        return [o for o in node.operands if isinstance(o, Tile)]
    return [node.operand] if isinstance(node, ReduceNode) else []
