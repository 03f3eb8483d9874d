"""Boxes: how much of a tile is valid and holds data, as far as that is known before the program runs.

An extent that only the running program knows is compared by how it came about: two loads from the same place of tensors
of one extent find equally much.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from tilewright.core.expr import Call, Expr, MakeTuple, Var
from tilewright.core.extents import as_extent
from tilewright.core.operands import Argument
from tilewright.core.types import TensorType, TileType, swapped
from tilewright.records import record
from tilewright.source import UNKNOWN, Span

Extent: TypeAlias = Hashable
"""A number, or how an extent came about: equal ones are equal when the program runs."""

Box: TypeAlias = tuple[Extent, ...]


@record
class Facts:
    """What is known of a tile: how much of it is valid, and in how much of that it holds data."""

    valid: Box
    holds: Box | None = None
    """Where it holds data, None: just where it is valid. A tile that was narrowed holds more."""
    is_sure: bool = True
    """Whether that is surely all of the valid part."""
    origin: Span = UNKNOWN
    """Where elements that nobody wrote became part of it."""

    @property
    def box(self) -> Box:
        """Where it holds data."""
        return self.valid if self.holds is None else self.holds


def extents_of(type_: TileType, at: Expr) -> Box:
    """Return the valid part a type states; what it does not is known by where it came about."""
    return tuple(v if isinstance(v, int) else ("at", id(at), axis) for axis, v in enumerate(type_.valid))


def unknown(call: Call) -> Box:
    """Return the box of an op's result in which only the running program knows that there is data."""
    assert isinstance(call.type, TileType)
    return tuple(("held", id(call), axis) for axis in range(len(call.type.shape)))


def shape_of(value: Argument) -> tuple[int, ...]:
    """Return the shape of an operand known to be a tile."""
    assert isinstance(value, Expr) and isinstance(value.type, TileType)
    return value.type.shape


@record
class Bits:
    """How many columns have a bit in the words of a packed mask."""

    columns: Extent
    width: int = 8
    """How many bits a word has."""


def packed(columns: Extent, width: int = 8) -> Extent:
    """Return how many words of so many bits hold one for each column."""
    return Bits(columns, width)


def _columns(have: Extent, width: int) -> Extent:
    """Return how many columns a mask has bits for."""
    return have.columns if isinstance(have, Bits) else width * have if isinstance(have, int) else None


def covers(have: Extent, want: Extent, most: int) -> bool:
    """Return whether an extent is surely as large as another, which is never more than `most`."""
    if isinstance(want, Bits):
        return covers(_columns(have, want.width), want.columns, want.width * most)
    return have == want or (isinstance(have, int) and (have >= most or (isinstance(want, int) and have >= want)))


def covered(have: Box, want: Box, most: Sequence[int]) -> bool:
    """Return whether a box surely covers another."""
    return all(covers(*extents) for extents in zip(have, want, most, strict=True))


def numbers(have: Extent, want: Extent) -> tuple[int, int] | None:
    """Return two extents as numbers, None where one is not known; those of a mask count columns."""
    if isinstance(want, Bits):
        have, want = _columns(have, want.width), want.columns
    return (have, want) if isinstance(have, int) and isinstance(want, int) else None


def least(a: Extent, b: Extent) -> Extent:
    """Return the smaller of two extents."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else ("least", a, b)


def loaded(call: Call, bound: Mapping[str, Argument], type_: TileType) -> Box:
    """Return how much a load finds: as much as any other at the same place of tensors of one extent."""
    tensor, offsets = bound["tensor"], bound["offsets"]
    asked = bound["valid_shape"]
    assert isinstance(tensor, Expr) and isinstance(tensor.type, TensorType) and isinstance(offsets, MakeTuple)
    found: list[Extent] = []
    for axis, (known, start) in enumerate(zip(type_.valid, offsets.elements, strict=True)):
        there = tensor.type.valid[axis]
        extent = ("of", tensor, axis) if there is None else there
        want = asked.elements[axis] if isinstance(asked, MakeTuple) else type_.shape[axis]
        found.append(known if isinstance(known, int) else ("load", start, want, extent))
    return tuple(found)


def turned(source: Facts, axis1: object, axis2: object) -> Facts:
    """Return the facts of a tile with two axes swapped."""
    assert isinstance(axis1, int) and isinstance(axis2, int)
    holds = None if source.holds is None else swapped(source.holds, axis1, axis2)
    return Facts(swapped(source.valid, axis1, axis2), holds, source.is_sure, source.origin)


def resized(call: Call, bound: Mapping[str, Argument], source: Facts, type_: TileType) -> Facts:
    """Return the facts of a tile whose valid part is another: a narrowed one still holds what it held."""
    asked = [v for name in ("valid_rows", "valid_cols") if isinstance(v := bound[name], Expr)]
    last = [extent if isinstance(extent := as_extent(v), int) else ("asked", v) for v in asked]
    valid = (*source.valid[:-2], *last)
    fits = zip(source.box, valid, type_.shape, strict=True)
    is_sure = all(covers(have, want, most) for have, want, most in fits)
    holds = None if valid == source.box else source.box
    return Facts(valid, holds, is_sure, call.span if source.is_sure else source.origin)


def merged(var: Var, old: Facts, new: Facts) -> Facts:
    """Return what holds for a tile that is one or another."""
    valid = _either(var, "valid", old.valid, new.valid)
    if old.is_sure and new.is_sure:
        return Facts(valid)
    origin = new.origin if old.is_sure else old.origin
    return Facts(valid, _either(var, "held", old.box, new.box), False, origin)


def _either(var: Var, what: str, old: Box, new: Box) -> Box:
    pairs = enumerate(zip(old, new, strict=True))
    return tuple(a if a == b else (what, id(var), axis) for axis, (a, b) in pairs)
