"""Undefined elements, while the program runs: the box at a tile's origin in which it holds data.

Only tiles that `passes.defined` is not sure about have one; others hold data wherever they are valid. An op that
looks at such a tile compares the box with the valid part, once, and leaves its function where elements that nobody
wrote would be looked at.

A tile that is created holds zeros, so that nothing older can show, and may be put together from parts in any order. It
counts the elements it is given: as many as are valid are taken for all of them. A part of a tile whose parts do not lie
side by side is taken to be defined. Of tiles that were joined, one of which may not reach the next, each one's box is
followed to what is cut, turned or computed of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from tilewright.backends.cpu.emit.boxes import beyond, cut, minus, outside, side_by_side, surely_covers, turned
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Joined, Part, Scalar, Tile, static
from tilewright.core.expr import Call
from tilewright.core.op import Undefined
from tilewright.core.types import TileType, swapped
from tilewright.native.llvm import FALSE, TRUE, Builder, Value, i64
from tilewright.passes.defined import repeated

Index = Callable[[Scalar], Value]


def box(tile: Tile) -> tuple[Value, ...]:
    """Return the extents in which a tile holds data."""
    return tile.valid if tile.defined is None else tile.defined


def _lent(b: Builder, tile: Tile) -> tuple[Value, ...]:
    """Return the extents in which what is made of a tile holds data."""
    if tile.defined is None or tile.is_scattered is None:
        return box(tile)
    return tuple(b.select(tile.is_scattered, v, have) for v, have in zip(tile.valid, tile.defined, strict=True))


def lacks(b: Builder, tile: Tile, needed: Sequence[Value]) -> Value | None:
    """Return whether an element of what is needed of a tile was written by nobody, None where surely not."""
    return beyond(b, box(tile), needed) if tile.joined is None else outside(b, tile.joined, needed)


def follow(b: Builder, index: Index, call: Call, bound: Bound, tile: Tile) -> None:
    """Give the result of an op the box in which it holds data, from those of its operands."""
    name = call.op.spec.name
    if name == "create":
        tile.defined, tile.written, tile.is_scattered = (i64(0),) * len(tile.valid), i64(0), FALSE
    elif call.op.spec.undefined is Undefined.SPREADS:
        unread = (*call.op.spec.unread, "mask")
        named = [(name, t) for name, t in bound.items() if isinstance(t, Tile) and name not in unread]
        tiles = [_as_column(b, t) if name == "vec" and repeated(call) is not None else t for name, t in named]
        is_partial = call.op.spec.family == "partial"
        tile.defined = _partly(b, tile, *tiles) if is_partial else _met(b, tile, tiles)
        tile.joined = None if is_partial else _met_beside(b, tile, tiles)
        _count(b, tile, tiles)
    elif name in _MOVES:
        _MOVES[name](b, index, call, bound, tile)


def _as_column(b: Builder, tile: Tile) -> Tile:
    """Return rows that are repeated as elements of a column: each is defined where all of its row is."""
    *rows, width = box(tile)
    there = b.select(b.compare("icmp sge", width, tile.valid[-1]), i64(1), i64(0))
    type_ = TileType((*tile.type.shape[:-1], 1), tile.type.dtype, (*tile.type.valid[:-1], 1))
    return replace(tile, type=type_, valid=(*tile.valid[:-1], i64(1)), defined=(*rows, there))


def _met(b: Builder, result: Tile, operands: Sequence[Tile]) -> tuple[Value, ...]:
    """Return where all operands hold data; one element serves a whole axis."""
    extents = list(result.valid)
    for operand in operands:
        for axis in range(-len(operand.valid), 0):
            have = box(operand)[axis]
            if operand.type.shape[axis] == 1 and result.type.shape[axis] != 1:
                if static(have) != 1:
                    extents[axis] = b.select(b.compare("icmp sgt", have, i64(0)), extents[axis], i64(0))
            elif not surely_covers(have, extents[axis]):
                extents[axis] = b.intrinsic("llvm.smin", have, extents[axis])
    return tuple(extents)


def _met_beside(b: Builder, result: Tile, operands: Sequence[Tile]) -> Joined | None:
    """Return where all operands hold data of which some were joined, all of those alike; None for others."""
    joined = [operand.joined for operand in operands if operand.joined is not None]
    if not joined or len({(each.axis, each.starts) for each in joined}) > 1:
        return None
    axis, starts = joined[0].axis, joined[0].starts
    parts = [[*_parts_of(b, operand, result, axis, starts)] for operand in operands]
    met = (_met(b, result, [replace(tile, defined=part.box) for tile, part in zip(operands, each, strict=True)])
           for each in zip(*parts, strict=True))  # fmt: skip
    return Joined(axis, tuple(Part(start, box) for start, box in zip(starts, met, strict=True)))


def _parts_of(b: Builder, operand: Tile, result: Tile, axis: int, starts: Sequence[Value]) -> Iterator[Part]:
    """Yield where an operand holds data, from places on an axis on."""
    if operand.joined is not None:
        yield from operand.joined.parts
        return
    own, serves_all = box(operand), len(operand.valid) < -axis
    serves_all = serves_all or (operand.type.shape[axis] == 1 and result.type.shape[axis] != 1)
    for start in starts:
        behind = [*own]
        if not serves_all:
            behind[axis] = minus(b, own[axis], start)
        yield Part(start, tuple(behind))


def _count(b: Builder, result: Tile, operands: Sequence[Tile]) -> None:
    """Let a result have been given as many elements as the operand that was given the fewest."""
    parts = [(t.written, t.is_scattered) for t in operands if t.written is not None and t.is_scattered is not None]
    if not parts or result.defined is None:
        return
    result.written = reduce(lambda x, y: b.intrinsic("llvm.smin", x, y), [written for written, _ in parts])
    result.is_scattered = reduce(lambda x, y: b.op("or", x, y), [scattered for _, scattered in parts])
    enough = b.op("and", result.is_scattered, _is_enough(b, result))
    result.defined = tuple(b.select(enough, v, d) for v, d in zip(result.valid, result.defined, strict=True))


def _is_enough(b: Builder, tile: Tile) -> Value:
    """Return whether a tile was given as many elements as are valid."""
    assert tile.written is not None
    return b.compare("icmp sge", tile.written, reduce(lambda x, y: b.op("mul", x, y), tile.valid))


def _partly(b: Builder, result: Tile, first: Tile, second: Tile) -> tuple[Value, ...]:
    """Return where a first tile that is changed by a second holds data: where the second is not valid, it stays."""
    alone, missing = _met(b, result, [first]), lacks(b, second, second.valid)
    if missing is None:
        return alone
    return tuple(b.select(missing, x, y) for x, y in zip(_met(b, result, [first, second]), alone, strict=True))


def _slice(b: Builder, index: Index, call: Call, bound: Bound, tile: Tile) -> None:
    starts = [index(start) for start in bound["offset"]]
    dropped: set[int] = {axis % len(starts) for axis in bound["drop_dims"] or ()}
    kept = [axis for axis in range(len(starts)) if axis not in dropped]
    there = [minus(b, have, start) for have, start in zip(_lent(b, bound["x"]), starts, strict=True)]
    inside = [b.intrinsic("llvm.smin", there[axis], live) for axis, live in zip(kept, tile.valid, strict=True)]
    for axis in dropped:
        some = b.compare("icmp sgt", there[axis], i64(0))
        inside = [b.select(some, extent, i64(0)) for extent in inside]
    tile.defined = tuple(inside)
    if bound["x"].joined is not None and not dropped:
        tile.joined = cut(b, bound["x"].joined, starts)


def sliced(bound: Bound) -> Bound:
    """Return the arguments of `extract` as those of a slice."""
    place = {"x": bound["src"], "offset": (bound["index_row"], bound["index_col"]), "shape": bound["shape"]}
    return {**place, "valid_shape": None, "drop_dims": None}


def _extract(b: Builder, index: Index, call: Call, bound: Bound, tile: Tile) -> None:
    _slice(b, index, call, sliced(bound), tile)


def _turned(b: Builder, index: Index, call: Call, bound: Bound, tile: Tile) -> None:
    source: Tile = bound["x"] if "x" in bound else bound["tile"]
    rank = len(source.valid)
    axes = [axis if axis < 0 else axis - rank for axis in (bound.get("axis1", -1), bound.get("axis2", -2))]
    tile.defined = swapped(box(source), *axes)
    tile.joined = None if source.joined is None else turned(source.joined, *axes)
    tile.written, tile.is_scattered = source.written, source.is_scattered


def _resized(b: Builder, index: Index, call: Call, bound: Bound, tile: Tile) -> None:
    if tile is not bound["x"]:
        tile.defined, tile.joined = _lent(b, bound["x"]), bound["x"].joined


def _concat(b: Builder, index: Index, call: Call, bound: Bound, tile: Tile) -> None:
    first, second = _lent(b, bound["src0"]), _lent(b, bound["src1"])
    rows = [b.intrinsic("llvm.smin", x, y) for x, y in zip(first[:-1], second[:-1], strict=True)]
    width = i64(bound["src0"].type.shape[-1])
    is_whole = b.compare("icmp sge", first[-1], width)
    tile.defined = (*rows, b.select(is_whole, b.op("add", width, second[-1]), first[-1]))
    tile.is_scattered = b.op("xor", is_whole, TRUE)
    halves = [each.joined or Joined(-1, (Part(i64(0), _lent(b, each)),)) for each in (bound["src0"], bound["src1"])]
    if all(half.axis == -1 for half in halves):
        tile.joined = side_by_side(b, halves[0], width, halves[1])


def _assemble(b: Builder, index: Index, call: Call, bound: Bound, tile: Tile) -> None:
    sizes = (*(i64(1),) * (len(tile.valid) - len(bound["source"].valid)), *bound["source"].valid)
    _grow(b, tile, bound["target"], [index(start) for start in bound["offset"]], sizes)


def _write(b: Builder, index: Index, call: Call, bound: Bound, tile: Tile) -> None:
    _grow(b, tile, bound["x"], [index(i) for i in bound["indices"]], (i64(1),) * len(tile.valid))


def _grow(b: Builder, tile: Tile, target: Tile, starts: Sequence[Value], sizes: Sequence[Value]) -> None:
    """Let a part that touches the box on one side, all along it, make it larger; count the part's elements."""
    extents, beside = list(box(target)), FALSE
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        touches = b.compare("icmp sle", start, extents[axis])
        for other in range(len(extents)):
            if other != axis:
                at_edge = b.compare("icmp eq", starts[other], i64(0))
                along = b.compare("icmp sge", sizes[other], extents[other])
                touches = b.op("and", touches, b.op("and", at_edge, along))
        grown = b.intrinsic("llvm.smax", extents[axis], b.op("add", start, size))
        extents[axis] = b.select(touches, grown, extents[axis])
        beside = b.op("or", beside, touches)
    if target.written is not None and target.is_scattered is not None:
        tile.is_scattered = b.op("or", target.is_scattered, b.op("xor", beside, TRUE))
        extents = _counted(b, tile, target.written, sizes, extents)
    tile.defined = tuple(extents)


def _scattered(b: Builder, index: Index, call: Call, bound: Bound, tile: Tile) -> None:
    """Count what is written somewhere into a tile: its rows, or as many elements as there are."""
    target: Tile = bound[call.op.spec.writes or ""]
    tile.defined, tile.written = box(target), target.written
    if target.written is None or target.is_scattered is None:
        return
    given = bound["shapes"] if "shapes" in bound else None
    extents = [index(n) for n in bound["valid_shape"] or given] if given is not None else bound["src"].valid
    tile.is_scattered = TRUE
    tile.defined = tuple(_counted(b, tile, target.written, extents, tile.defined))


def _counted(b: Builder, tile: Tile, before: Value, sizes: Sequence[Value], held: Sequence[Value]) -> list[Value]:
    """Count elements that are written into a tile; return what it holds, all that is valid once they are enough."""
    tile.written = b.op("add", before, reduce(lambda x, y: b.op("mul", x, y), sizes))
    enough = _is_enough(b, tile)
    return [b.select(enough, v, have) for v, have in zip(tile.valid, held, strict=True)]


_MOVES: dict[str, Callable[[Builder, Index, Call, Bound, Tile], None]] = {
    "slice": _slice,
    "extract": _extract,
    "transpose": _turned,
    "transpose_view": _turned,
    "set_validshape": _resized,
    "concat": _concat,
    "assemble": _assemble,
    "write": _write,
    **dict.fromkeys(("gather_row", "scatter", "scatter_mask", "scatter_update"), _scattered),
}


def shrinks(b: Builder, held: Sequence[Value], is_made: Value, value: Tile) -> Value | None:
    """Return whether a tile is valid in less than what it was computed from, which held more than one number."""
    less: Value | None = None
    for old, new in zip(held, value.valid, strict=True):
        if not surely_covers(new, old):
            short = b.compare("icmp slt", new, old)
            less = short if less is None else b.op("or", less, short)
    return None if less is None else b.op("and", less, b.op("xor", is_made, TRUE))
