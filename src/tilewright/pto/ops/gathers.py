"""Gathers and scatters: elements by index, by pattern, and one by one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from tilewright.core.expr import Expr
from tilewright.errors import AttributeValueError, UnsupportedFeatureError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import destination
from tilewright.pto.machine.tiles import (
    bytes_view,
    check_covers,
    check_range,
    corresponding,
    element_strides,
    replaced,
    window,
    write,
)
from tilewright.pto.machine.values import Tile, View
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.conversions import word_of
from tilewright.pto.ops.moves import flat
from tilewright.pto.ops.selections import BYTE
from tilewright.pto.text.form import tile

PATTERNS = {
    "P0101": (2, 0), "P1010": (2, 1), "P0001": (4, 0), "P0010": (4, 1), "P0100": (4, 2), "P1000": (4, 3),
    "P1111": (1, 0),
}  # fmt: skip
"""Which elements a mask pattern takes: every so many, from where on."""

BLOCK = 32
"""Bytes that a gather of blocks takes at once."""


def placed(m: Machine, *tiles: Tile) -> bool:
    """Return whether all tiles have bytes; those that have none will, the next time."""
    slots = [one.slot for one in tiles if one.slot is not None]
    for slot in slots:
        m.demote(slot)
    return not slots


@contextmanager
def each(m: Machine, region: tuple[Expr, Expr]) -> Generator[tuple[Expr, Expr]]:
    """Write loops over the elements of a region around what is written inside."""
    with m.b.loop(0, region[0], hint="row") as row, m.b.loop(0, region[1], hint="column") as column:
        yield row, column


def element(m: Machine, view: Expr, *at: Expr) -> Expr:
    """Return one element of a view."""
    return m.b.op("tensor.read", x=view, indices=at)


def put(m: Machine, view: Expr, value: Expr, *at: Expr) -> None:
    """Set one element of a view."""
    m.b.do("tensor.write", x=view, indices=at, value=value)


@declare("pto.tgather", tile("zx?x?x?", "zz?"))
def _gather(m: Machine, op: Op) -> None:
    source, target = m.get(op.ins[0], Tile), destination(m, op)
    pattern = op.attributes.get("maskPattern", op.attributes.get("mask_pattern"))
    if pattern is not None:
        _gather_pattern(m, source, target, word_of(pattern))
        return
    if len(op.ins) < 2 or "cmpMode" in op.attributes:
        raise UnsupportedFeatureError("only gathers by index and by mask pattern can be run here")
    places = m.get(op.ins[1], Tile)
    if not placed(m, source, places, target):
        return
    elements, indices, made = flat(m, source), corresponding(m, places, target), window(m, target, target.valid)
    with each(m, target.valid) as at:
        put(m, made, element(m, elements, m.b.index(element(m, indices, *at))), *at)


def _gather_pattern(m: Machine, source: Tile, target: Tile, pattern: str) -> None:
    """Take every so many elements of each row, side by side."""
    if pattern not in PATTERNS:
        raise AttributeValueError(f"there is no mask pattern {pattern!r}", help=f"one of {', '.join(PATTERNS)}")
    if not placed(m, source):
        return
    period, first = PATTERNS[pattern]
    rows, columns = element_strides(source)
    taken = (source.type.cols - first + period - 1) // period
    check_covers(m, source, (target.valid[0], m.b.index(1)), (target.type.rows, 1))
    check_range(m, target.valid[1], taken, f"`{pattern}` takes {taken} of {source.type.cols} columns")
    start = m.b.add(source.place.offset, first * columns * source.type.element.nbytes)
    steps = m.b.index(rows), m.b.index(columns * period)
    view = bytes_view(m, replaced(source.place, start), target.valid, steps)
    shape = target.type.valid_rows or target.type.rows, target.type.valid_cols or target.type.cols
    write(m, target, m.b.op("tile.load", tensor=view, offsets=(0, 0), shapes=shape, valid_shape=target.valid))


@declare("pto.tgatherb", tile("zz", "z"))
def _gather_blocks(m: Machine, op: Op) -> None:
    """Take blocks of 32 bytes at byte offsets from the source's start."""
    source, places, target = m.get(op.ins[0], Tile), m.get(op.ins[1], Tile), destination(m, op)
    if not placed(m, source, places, target):
        return
    offsets = window(m, places, places.valid)
    across = m.b.index(target.type.cols * target.type.element.nbytes // BLOCK)
    one, wide = m.b.index(1), m.b.index(BLOCK)
    with each(m, places.valid) as (row, column):
        start = m.b.index(element(m, offsets, row, column))
        check_range(m, start, source.type.nbytes - BLOCK, "a block lies outside the tile it is taken from")
        number = m.b.add(m.b.scalar("mul", row, across), column)
        check_range(m, number, target.type.nbytes // BLOCK - 1, "there are more blocks than the tile has room for")
        come = m.b.add(source.place.offset, start)
        go = m.b.add(target.place.offset, m.b.mul(number, BLOCK))
        view = bytes_view(m, replace(source.place, element=BYTE, offset=come), (one, wide), (wide, one))
        room = bytes_view(m, replace(target.place, element=BYTE, offset=go), (one, wide), (wide, one))
        block = m.b.op("tile.load", tensor=view, offsets=(0, 0), shapes=(1, BLOCK))
        m.b.do("tile.store", tile=block, offsets=(0, 0), output_tensor=room)


@declare("pto.tscatter", tile("zz", "z"))
def _scatter(m: Machine, op: Op) -> None:
    """Put each element into the row its index names, in its own column."""
    source, places, target = m.get(op.ins[0], Tile), m.get(op.ins[1], Tile), destination(m, op)
    if not placed(m, source, places, target):
        return
    whole = m.b.index(target.type.rows), m.b.index(target.type.cols)
    elements, indices = window(m, source, source.valid), corresponding(m, places, source)
    made = window(m, target, whole)
    with each(m, source.valid) as (row, column):
        to = m.b.index(element(m, indices, row, column))
        put(m, made, element(m, elements, row, column), to, column)


@declare("pto.mgather", tile("yz", "z"))
def _gather_memory(m: Machine, op: Op) -> None:
    view, places, target = m.get(op.ins[0], View), m.get(op.ins[1], Tile), destination(m, op)
    if not placed(m, places, target):
        return
    indices, made, one = corresponding(m, places, target), window(m, target, target.valid), m.b.index(1)
    with each(m, target.valid) as at:
        step = m.b.mul(m.b.index(element(m, indices, *at)), view.pointer.element.nbytes)
        found = bytes_view(m, replaced(view.pointer, m.b.add(view.pointer.offset, step)), (one,), (one,))
        put(m, made, element(m, found, m.b.index(0)), *at)


@declare("pto.mscatter", tile("zz", "y"))
def _scatter_memory(m: Machine, op: Op) -> None:
    source, places, view = m.get(op.ins[0], Tile), m.get(op.ins[1], Tile), m.get(op.outs[0], View)
    if not placed(m, source, places):
        return
    elements, indices, one = window(m, source, source.valid), corresponding(m, places, source), m.b.index(1)
    with each(m, source.valid) as at:
        step = m.b.mul(m.b.index(element(m, indices, *at)), view.pointer.element.nbytes)
        room = bytes_view(m, replaced(view.pointer, m.b.add(view.pointer.offset, step)), (one,), (one,))
        put(m, room, element(m, elements, *at), m.b.index(0))
