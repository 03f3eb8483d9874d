"""Gathers and scatters: elements by index, by pattern, and one by one, of tiles and of registers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from tilewright.core.expr import Expr
from tilewright.dtypes import UINT8
from tilewright.errors import AttributeValueError, UnsupportedFeatureError
from tilewright.pto.asked_words import COMPARISON
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.places import NBYTES
from tilewright.pto.machine.registers import (
    BLOCK,
    blank_lanes,
    elements_of,
    lane_view,
    lanes_of,
    lit,
    lit_lanes,
    position,
    written,
)
from tilewright.pto.machine.tiles import (
    bytes_view,
    check_covers,
    check_range,
    corresponding,
    element_strides,
    window,
    write,
)
from tilewright.pto.machine.values import Tile, Vector
from tilewright.pto.module import Op, word_of
from tilewright.pto.op import Constants, declare, element_type, equal, number_of
from tilewright.pto.operand_laws import gathered, made_by_rows, scattered
from tilewright.pto.ops.moves import flat
from tilewright.pto.ops.selections import BYTE
from tilewright.pto.ops.vector_memory import accessed, unsigned
from tilewright.pto.text.form import memory, tile
from tilewright.pto.types import Scalar, VReg

PATTERNS = {
    "P0101": (2, 0), "P1010": (2, 1), "P0001": (4, 0), "P0010": (4, 1), "P0100": (4, 2), "P1000": (4, 3),
    "P1111": (1, 0),
}  # fmt: skip
"""Which elements a mask pattern takes: every so many, from where on."""


def is_empty(tile: Tile) -> bool:
    """Return whether nothing of a tile is valid, so that there is nothing to do for it."""
    return 0 in (tile.type.valid_rows, tile.type.valid_cols)


@contextmanager
def each(m: Machine, region: tuple[Expr, Expr]) -> Generator[tuple[Expr, Expr]]:
    """Write loops over the elements of a region around what is written inside."""
    with m.b.loop(0, region[0], hint="row") as row, m.b.loop(0, region[1], hint="column") as column:
        yield row, column


def _finds(op: Op, _: Constants) -> None:
    """Refuse a comparison that is none, what it finds in anything but words, and patterns but along rows."""
    if "axis" in op.attributes and str(op.attributes["axis"]).strip('"') != "row":
        raise PtoAttributeError(f"`{op.name}` gathers along {op.attributes['axis']}", help="axis is row")
    if len(op.ins) < 2 or not isinstance(op.ins[1].type, Scalar):
        return
    mode, element = word_of(op.attributes.get("cmpMode", "eq")).lower(), element_type(op.ins[0].type)
    if mode not in ("eq", "gt"):
        raise PtoAttributeError(f"`{op.name}` compares with {mode}", help="cmpMode is eq or gt")
    equal(op, "number to compare with", op.ins[1].type, element)
    made = [element_type(value.type) for value in op.outs]
    if len(made) != 2 or made[0] != made[1] or made[0].bits != 32 or made[0].is_float:
        shown = " and ".join(map(str, made))
        message = f"`{op.name}` finds columns and counts them in equal integers of 32 bits, got {shown}"
        raise PtoTypeMismatchError(message, help="write `outs(%columns, %counts : T, T)` with i32 tiles")


@declare(
    "pto.tgather",
    tile("zx?x?x?", "zz?"),
    rule=_finds,
    law=gathered,
    words={"cmpMode": COMPARISON["cmpMode"], **dict.fromkeys(("maskPattern", "mask_pattern", "axis", "offset"), "")},
    example="(%x: t8x64xf32, %i: t8x64xi32 = 0..511, %out: t8x64xf32); {op} ins(%x, %i) outs(%out)",
    means="x.ravel()[i]",
)
def _gather(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """Elements of a tile at indices, of a mask pattern, or that compare so."""
    pattern = op.attributes.get("maskPattern", op.attributes.get("mask_pattern"))
    if pattern is not None:
        _gather_pattern(m, source, target, word_of(pattern))
        return
    if len(op.ins) < 2:
        message = "a gather takes indices, a mask pattern, or a number that elements are compared with"
        raise UnsupportedFeatureError(message, help="write `ins(%src, %indices : T, U)`, or `maskPattern`")
    if isinstance(op.ins[1].type, Scalar):
        _gather_matches(m, op, target, source)
        return
    places = m.get(op.ins[1], Tile)
    if not m.placed(source, places, target) or is_empty(target):
        return
    elements, indices, made = flat(m, source), corresponding(m, places, target), window(m, target, target.valid)
    with each(m, target.valid) as at:
        m.b.set(made, m.b.get(elements, m.b.index(m.b.get(indices, *at))), *at)


def _gather_matches(m: Machine, op: Op, target: Tile, source: Tile) -> None:
    """Write out, row by row, the columns of elements that equal a number or are greater, and how many there are."""
    counts, mode = m.get(op.outs[1], Tile), word_of(op.attributes.get("cmpMode", "eq")).lower()
    if not m.placed(source, target, counts) or source.type.valid_rows == 0:
        return
    wanted = m.b.cast(m.expr(op.ins[1]), source.type.element.dtype)
    offset = number_of(op, "offset") or 0
    rows, cols = source.valid
    elements = window(m, source, source.valid)
    check_covers(m, target, (rows, m.b.index(1)), (source.type.rows, 1))
    check_covers(m, counts, (rows, m.b.index(1)), (source.type.rows, 1))
    places = window(m, target, (rows, m.b.index(target.type.cols)))
    totals = window(m, counts, (rows, m.b.index(1)))
    with m.b.loop(0, rows, hint="row") as row:
        found = m.b.held(m.b.index(0), "found")
        if source.type.valid_cols != 0:
            with m.b.loop(0, cols, hint="column") as column:
                with m.b.when(m.b.scalar(mode, m.b.get(elements, row, column), wanted)):
                    number = m.b.cast(m.b.add(column, offset), target.type.element.dtype)
                    m.b.set(places, number, row, found)
                    m.b.assign(found, m.b.add(found, 1))
        m.b.set(totals, m.b.cast(found, counts.type.element.dtype), row, 0)


def _gather_pattern(m: Machine, source: Tile, target: Tile, pattern: str) -> None:
    """Take every so many elements of each row, side by side."""
    if pattern not in PATTERNS:
        raise AttributeValueError(f"there is no mask pattern {pattern!r}", help=f"one of {', '.join(PATTERNS)}")
    if not m.placed(source):
        return
    period, first = PATTERNS[pattern]
    rows, columns = element_strides(source)
    taken = (source.type.cols - first + period - 1) // period
    check_covers(m, source, (target.valid[0], m.b.index(1)), (target.type.rows, 1))
    check_range(m, target.valid[1], taken, f"`{pattern}` takes {taken} of {source.type.cols} columns")
    start = m.b.add(source.place.offset, first * columns * source.type.element.nbytes)
    view = bytes_view(m, replace(source.place, offset=start), target.valid, (rows, columns * period))
    shape = target.type.valid_rows or target.type.rows, target.type.valid_cols or target.type.cols
    write(m, target, m.b.load(view, shape, target.valid))


@declare(
    "pto.tgatherb",
    tile("zz", "z"),
    law=made_by_rows,
    example="(%x: t8x64xf32, %i: t8x8xui32 = zeros, %out: t8x64xf32); {op} ins(%x, %i) outs(%out)",
    means="x.ravel()[np.repeat(i // 4, 8, 1) + np.tile(np.arange(8), 8)]",
)
def _gather_blocks(m: Machine, op: Op, target: Tile, source: Tile, places: Tile) -> None:
    """Take blocks of 32 bytes at byte offsets from the source's start."""
    if not m.placed(source, places, target):
        return
    offsets = window(m, places, places.valid)
    across = m.b.index(target.type.cols * target.type.element.nbytes // BLOCK)
    with each(m, places.valid) as (row, column):
        start = m.b.index(m.b.get(offsets, row, column))
        check_range(m, start, source.type.nbytes - BLOCK, "a block lies outside the tile it is taken from")
        number = m.b.add(m.b.scalar("mul", row, across), column)
        check_range(m, number, target.type.nbytes // BLOCK - 1, "there are more blocks than the tile has room for")
        come = m.b.add(source.place.offset, start)
        go = m.b.add(target.place.offset, m.b.mul(number, BLOCK))
        view = bytes_view(m, replace(source.place, element=BYTE, offset=come), (1, BLOCK), (BLOCK, 1))
        room = bytes_view(m, replace(target.place, element=BYTE, offset=go), (1, BLOCK), (BLOCK, 1))
        m.b.store(room, m.b.load(view, (1, BLOCK)))


@declare(
    "pto.tscatter",
    tile("zz", "z"),
    law=scattered,
    example="(%x: t8x64xf32, %i: t8x64xi32 = 0..7, %y: t8x64xf32); {op} ins(%x, %i) outs(%y)",
    means="for r, c in np.ndindex(x.shape): y[i[r, c], c] = x[r, c]",
)
def _scatter(m: Machine, op: Op, target: Tile, source: Tile, places: Tile) -> None:
    """Put each element into the row its index names, in its own column."""
    if not m.placed(source, places, target) or is_empty(source):
        return
    whole = m.b.index(target.type.rows), m.b.index(target.type.cols)
    elements, indices = window(m, source, source.valid), corresponding(m, places, source)
    made = window(m, target, whole)
    with each(m, source.valid) as (row, column):
        to = m.b.index(m.b.get(indices, row, column))
        m.b.set(made, m.b.get(elements, row, column), to, column)


# registers


def _indices(m: Machine, op: Op) -> Expr:
    """Return the vector of indices, which comes after the pointer."""
    found = next((v.expr for v in (m.values[o] for o in reversed(op.operands)) if isinstance(v, Vector)), None)
    if found is None:
        message = f"`{op.name}` takes a vector of indices behind its pointer"
        raise UnsupportedFeatureError(message, help="as in `%p, %indices, %mask`")
    return found


@declare(
    "pto.vgather2 vgather2_bc",
    memory("lx?x?x?", "u"),
    example="(%x: !pto.ptr<f32, ub>, %i: v64xui32 = 0..255, %m: m32); %r = {op} %x, %i, %m -> v64xf32",
    means="x[i]",
)
def _gather_lanes(m: Machine, op: Op) -> Expr:
    """Each lane is the element behind the pointer that an index names; bytes are made longer with zeros."""
    pointer, _ = accessed(m, op, 0)
    type_, offsets = op.results[0].of(VReg), _indices(m, op)
    lanes = min(lanes_of(offsets), type_.lanes)
    element = unsigned(1) if pointer.element.nbytes < type_.element.nbytes else type_.element
    source, indices = elements_of(m, pointer, element), lane_view(m, offsets)
    made, buffer = blank_lanes(m, type_.element.dtype, type_.lanes)
    with lit_lanes(m, lit(m, op, NBYTES // lanes), lanes) as lane:
        found = source.get(position(m, indices, lane))
        m.b.set(made, m.b.cast(found, type_.element.dtype), lane)
    return written(m, op, buffer)


@declare(
    "pto.vgatherb",
    memory("lx?x?x?", "u"),
    example="(%x: !pto.ptr<f32, ub>, %i: v64xui32 = zeros, %m: m32 = PAT_VL8); %r = {op} %x, %i, %m -> v64xf32",
    means="x[np.repeat(i[:8] // 4, 8) + np.tile(np.arange(8), 8)] if m[:8].all() else 0 * x[:64]",
)
def _gather_lane_blocks(m: Machine, op: Op) -> Expr:
    """Each block of 32 bytes comes from the byte offset that one of the first eight indices names."""
    pointer, _ = accessed(m, op, 0)
    source, indices = elements_of(m, pointer, unsigned(1)), lane_view(m, _indices(m, op))
    made, buffer = blank_lanes(m, UINT8, NBYTES)
    with lit_lanes(m, lit(m, op, 4), 8) as block:
        start, to = position(m, indices, block), m.b.mul(block, BLOCK)
        with m.b.loop(0, BLOCK, hint="byte") as byte:
            m.b.set(made, source.get(m.b.scalar("add", start, byte)), m.b.scalar("add", to, byte))
    return written(m, op, buffer)


@declare(
    "pto.vscatter",
    memory("ulx?x?"),
    example="(%x: v64xf32, %y: !pto.ptr<f32, ub>, %i: v64xui32 = arange, %m: m32); {op} %x, %y, %i, %m",
    means="y[i[m]] = x[m]",
)
def _scatter_lanes(m: Machine, op: Op, source: Vector) -> None:
    """Each lane goes where an index says; of bytes, every other one."""
    pointer, offsets = accessed(m, op, 1)[0], _indices(m, op)
    lanes = lanes_of(offsets)
    if lanes > source.lanes:
        raise UnsupportedFeatureError(f"{op.name} has {lanes} indices for {source.lanes} elements")
    target = elements_of(m, pointer, source.element)
    values, indices = lane_view(m, source.expr), lane_view(m, offsets)
    with lit_lanes(m, lit(m, op, NBYTES // lanes), lanes) as lane:
        value = m.b.get(values, m.b.mul(lane, source.lanes // lanes))
        target.set(position(m, indices, lane), value)
