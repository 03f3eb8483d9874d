"""Groups: recorded ops that share their rows, and what is done with their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from tilewright.backends.cpu.emit.values import Place, Scalar, Tensor, Tile
from tilewright.native.llvm import Value
from tilewright.records import mutable
from tilewright.source import UNKNOWN, Span


@mutable
class Sink:
    """Something done with a tile's elements in the pass of their level."""

    tile: Tile
    span: Span = UNKNOWN


@mutable
class StoreSink(Sink):
    """Elements written to a tensor from `offsets` on; `add` accumulates, `atomic` while other threads do so too.

    Where `fits` does not hold an error has been noted, and the whole group is skipped.
    """

    tensor: Tensor = field(kw_only=True)
    offsets: tuple[Value, ...] = field(kw_only=True)
    add: bool = False
    atomic: bool = False
    fits: Value | None = None
    mask: Tile | None = None
    """What says which elements are written, and what makes of its elements which are."""
    admit: Callable[..., Value] | None = None
    updates: bool = False
    """Whether elements go to where the same are loaded from in this pass."""


@mutable
class SaveSink(Sink):
    """Elements written to a place of the arena."""

    place: Place = field(kw_only=True)


@mutable
class Group:
    """Recorded ops that share their rows, and become one loop over them."""

    rows: tuple[Value, ...]
    tiles: list[Tile] = field(default_factory=list[Tile])
    stores: list[StoreSink] = field(default_factory=list[StoreSink])
    places: dict[Tile, Place] = field(default_factory=dict[Tile, Place])
    """Where results that outlive the group go."""
    turned: bool = False
    """Whether a vector holds elements of several rows."""


def grouped(tiles: Iterable[Tile]) -> list[Group]:
    """Return tiles in groups of the same rows."""
    groups: dict[tuple[Value, ...], Group] = {}
    for tile in tiles:
        groups.setdefault(tile.rows, Group(tile.rows)).tiles.append(tile)
    return list(groups.values())


def read_first(sinks: Sequence[Sink]) -> list[Tile]:
    """Return what is to be known of some columns before anything is stored to where it may be loaded from."""
    stores = [sink for sink in sinks if isinstance(sink, StoreSink)]
    if len(stores) < 2 or not any(sink.updates for sink in stores):
        return []
    return [tile for sink in stores for tile in (sink.tile, sink.mask) if tile is not None]


def level_of(value: Tile | Scalar) -> int:
    """Return the first pass in which a value can be used."""
    return 0 if isinstance(value, Scalar) or value.node is None else value.node.ready


def operands_of(tile: Tile) -> list[Tile]:
    """Return the tiles that a recorded one is computed from."""
    return [] if tile.node is None else [o for o in tile.node.operands if isinstance(o, Tile)]


def sources_of(tile: Tile, is_meant: Callable[[Tile], bool] = lambda tile: True) -> list[Tile]:
    """Return the tiles of some kind that a recorded one is computed from, step by step, the first ones first."""
    found: dict[Tile, None] = {}

    def visit(reader: Tile) -> None:
        for operand in operands_of(reader):
            if operand not in found and is_meant(operand):
                visit(operand)
                found[operand] = None

    visit(tile)
    return list(found)
