"""Tiles: reading and writing the elements of tile buffers, wherever they are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Expr, constant
from tilewright.core.extents import bounds
from tilewright.core.types import TileType, tile
from tilewright.dtypes import FP8E8M0, FP32
from tilewright.errors import OutOfBoundsError, UnsupportedFeatureError
from tilewright.ops.builder import known, tile_type
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.places import Slot
from tilewright.pto.machine.values import Pointer, Tile
from tilewright.pto.types import I64, Space, TileBuf
from tilewright.records import record

Extents = tuple[Expr, Expr]


def value_type(type_: TileBuf) -> TileType | None:
    """Return the type of the variable that can stand for a tile: its valid part, or as much as that may be."""
    valid = type_.valid_rows, type_.valid_cols
    if 0 in valid:
        return None
    memory = MemorySpace.Acc if type_.space is Space.ACC else MemorySpace.Vec
    return tile([valid[0] or type_.rows, valid[1] or type_.cols], type_.element.dtype, valid, memory)


def read(
    m: Machine, source: Tile, region: Extents, limit: tuple[int, int] | None = None, at: Extents | None = None
) -> Expr:
    """Return rows and columns of a tile from a position on; `limit` bounds extents nobody knows yet."""
    most = limit or source.limits
    _reaches(m, source.type.space, source)
    check_covers(m, source, region, most, at)
    shape = static(region, most)
    if source.slot is not None:
        return _read_slot(m, source, region, shape, at)
    if source.strides is None and source.type.slayout != "none_box":
        return _read_boxes(m, source, region, shape, at)
    view = window(m, source, region, at)
    return m.b.load(view, shape, _asked(region))


def _reaches(m: Machine, space: Space, tile: Tile | None = None) -> None:
    """Note an access to a local memory: another core's is shared, and tiles there need addresses."""
    if m.core is None or not m.claimed or space is Space.GM or m.core.owns(space):
        return
    m.core.meeting.shared.add(space)
    key = None if tile is None or tile.slot is None else tile.slot.key
    is_addressed = tile is None or (tile.slot is None and tile.place.arena is not None)
    if not is_addressed and not (isinstance(key, tuple) and key[:1] == (space,)):
        message = f"this tile lies in the memory of another core, `{space.loc}`, and has no address there"
        raise UnsupportedFeatureError(message, help="allocate it with `addr`, on both cores")


def refuse_reach(tile: Tile, extents: tuple[int | None, int | None], at: Extents | None = None) -> None:
    """Raise where so many rows and columns from a position on certainly leave a tile."""
    starts = (0, 0) if at is None else (known(at[0]), known(at[1]))
    limits = tile.type.rows, tile.type.cols
    for word, start, extent, limit in zip(("rows", "columns"), starts, extents, limits, strict=True):
        first = start or 0
        if first < 0 or first + (extent or 0) > limit:
            raise OutOfBoundsError(f"{word} {first} to {first + (extent or 0)} leave a tile of {limit} {word}")


def check_range(m: Machine, number: Expr, most: int, message: str) -> None:
    """Stop the program where a number is negative or too large; nothing is left of it where that cannot be."""
    reach = bounds(number)
    if reach is not None and 0 <= reach[0] and reach[1] <= most:
        return
    if reach is not None and (reach[1] < 0 or reach[0] > most):
        raise OutOfBoundsError(message)
    fits = m.b.scalar("and_", m.b.scalar("ge", number, m.b.index(0)), m.b.scalar("le", number, m.b.index(most)))
    m.b.act("system.device_assert", condition=fits, message=message)


def check_covers(m: Machine, tile: Tile, region: Extents, limit: tuple[int, int], at: Extents | None = None) -> None:
    """Stop the program where so many rows and columns from a position on leave a tile; `limit` is the most they can be.

    What the tile itself says is valid of it needs no check, nor a position that only the running program knows: whoever
    has one checks it.
    """
    refuse_reach(tile, (known(region[0]), known(region[1])), at)
    if region == tile.valid and at is None:
        return
    starts = (0, 0) if at is None else (known(at[0]), known(at[1]))
    sides = zip(("rows", "columns"), region, limit, tile.limits, starts, strict=True)
    for word, extent, most, have, start in sides:
        if known(extent) is None and start is not None and start + most > have:
            check_range(m, extent, have - start, f"more than {have - start} {word} leave a tile of {have}")


def corresponding(m: Machine, tile: Tile, other: Tile) -> Expr:
    """Return a view of a tile's elements where another tile is valid."""
    check_covers(m, tile, other.valid, other.limits)
    return window(m, tile, other.valid)


def common(m: Machine, tile: Tile, other: Tile) -> Extents:
    """Return how much is valid of two tiles."""
    return m.b.least(tile.valid[0], other.valid[0]), m.b.least(tile.valid[1], other.valid[1])


def check_reach(m: Machine, tile: Tile, region: Extents, at: Extents) -> None:
    """Stop the program where rows and columns from a position on leave a tile."""
    for word, start, extent, most in zip(("row", "column"), at, region, tile.limits, strict=True):
        if known(start) is None or known(extent) is None:
            check_range(m, start, most, f"a {word} does not lie within 0 to {most}")
            end = m.b.add(start, extent)
            check_range(m, end, most, f"{word}s that end behind {most} leave their tile")


def read_all(m: Machine, source: Tile, limit: tuple[int, int] | None = None) -> Expr:
    """Return the valid part of a tile."""
    return read(m, source, source.valid, limit)


def cover(m: Machine, target: Tile, value: Expr) -> None:
    """Let a value that is valid where a tile is be what the tile holds there."""
    write(m, target, value, covers=target.valid)


def write(m: Machine, target: Tile, value: Expr, at: Extents | None = None, covers: Extents | None = None) -> None:
    """Let the valid part of a value be the leading part of a tile, or a part of it.

    `covers` says how much that is, for values of which only the running program knows.
    """
    valid = tile_type(value).valid
    rows, cols = (extent if isinstance(extent, int) else None for extent in valid)
    refuse_reach(target, (rows, cols), at)
    _reaches(m, target.type.space, target)
    if target.slot is not None:
        _write_slot(m, target.slot, value, at, covers)
        return
    if target.strides is None and target.type.slayout != "none_box":
        _write_boxes(m, target, value, at)
        return
    height, width = (
        m.b.index(extent) if isinstance(extent, int) else rest
        for extent, rest in zip(valid, _rest(m, target, at), strict=True)
    )
    view = window(m, target, (height, width), at)
    m.b.store(view, value)


def _rest(m: Machine, target: Tile, at: Extents | None) -> Extents:
    """Return how much of a tile lies behind a position."""
    whole = m.b.index(target.type.rows), m.b.index(target.type.cols)
    if at is None:
        return whole
    return m.b.scalar("sub", whole[0], at[0]), m.b.scalar("sub", whole[1], at[1])


def window(m: Machine, source: Tile, region: Extents, at: Extents | None = None) -> Expr:
    """Return a strided view of the elements of a tile that has no boxes, from a position on."""
    place = source.place if at is None else elements_at(m, source, at)
    return bytes_view(m, place, region, element_strides(source))


def elements_at(m: Machine, source: Tile, at: Extents) -> Pointer:
    """Return where the elements of a tile that has no boxes lie, from a position on."""
    offset = source.place.offset
    for index, stride in zip(at, element_strides(source), strict=True):
        offset = m.b.add(offset, m.b.mul(index, stride * source.type.element.nbytes))
    return replace(source.place, offset=offset)


def moved(m: Machine, pointer: Pointer, elements: Expr) -> Pointer:
    """Return a pointer so many elements further on."""
    number = known(elements)
    if number is not None and abs(number) * pointer.element.nbytes >= 1 << 63:
        raise OutOfBoundsError(f"element {number} of {pointer.element} lies outside every memory")
    return replace(pointer, offset=m.b.add(pointer.offset, product(m, elements, m.b.index(pointer.element.nbytes))))


def product(m: Machine, lhs: Expr, rhs: Expr) -> Expr:
    """Return a product of offsets and strides; one that may be more than any memory has is checked before it is used.

    Floats tell: what they lose is nothing beside what they are held to.
    """
    made = m.b.scalar("mul", lhs, rhs)
    if known(made) is None and bounds(made) is None:
        size = m.b.scalar("mul", m.b.cast(lhs, FP32), m.b.cast(rhs, FP32))
        inside = (m.b.scalar("lt", size, constant(FARTHEST)), m.b.scalar("gt", size, constant(-FARTHEST)))
        m.b.act("system.device_assert", condition=m.b.scalar("and_", *inside), message="this lies outside every memory")
    return made


FARTHEST = float(1 << 60)
"""No offset into memory is more."""


def cell_view(m: Machine, pointer: Pointer) -> Expr:
    """Return the one element behind a pointer."""
    return bytes_view(m, pointer, (1,), (1,))


def get_cell(m: Machine, key: Hashable) -> Expr:
    """Return a number that the machine keeps under a key, zero to begin with."""
    return m.b.index(m.b.get(cell_view(m, m.memory.cell(key, I64)), 0))


def set_cell(m: Machine, key: Hashable, value: Expr) -> None:
    """Keep a number under a key."""
    m.b.set(cell_view(m, m.memory.cell(key, I64)), m.b.cast(value, I64.dtype), 0)


def bytes_view(m: Machine, pointer: Pointer, shape: Sequence[Expr | int], strides: Sequence[Expr | int]) -> Expr:
    """Return the memory behind a pointer under a shape and strides, which count its elements."""
    extents, steps = tuple(map(m.b.index, shape)), tuple(map(m.b.index, strides))
    buffer, offset, arena = pointer.buffer, pointer.offset, pointer.arena
    if arena is not None:
        _reaches(m, pointer.space)
        span = _span(pointer, extents, steps)
        _refuse_outside(pointer, span if all(known(n) for n in extents) else None)
        arena.touch(offset, span)
        part = arena.part(offset, span)
        if part is not None:
            buffer, offset = arena.piece(part), m.b.add(offset, -part[0])
        if arena.base is not None:
            offset = m.b.add(offset, arena.base)
    dtype = pointer.element.dtype
    return m.b.do("tensor.as_strided", buffer=buffer, shape=extents, strides=steps, offset=offset, dtype=dtype)


def _refuse_outside(pointer: Pointer, nbytes: int | None) -> None:
    """Refuse an access that certainly does not lie inside its memory."""
    start = bounds(pointer.offset)
    if pointer.arena is None or start is None or nbytes is None or start[0] + nbytes <= pointer.arena.limit:
        return
    raise OutOfBoundsError(
        f"bytes {start[0]} to {start[0] + nbytes} do not lie inside the {pointer.arena.limit} bytes of "
        f"`{pointer.space.loc}`"
    )


def _span(pointer: Pointer, shape: tuple[Expr, ...], strides: tuple[Expr, ...]) -> int | None:
    last = 0
    for extent, stride in zip(shape, strides, strict=True):
        reach, step = bounds(extent), bounds(stride)
        if reach is None or step is None:
            return None
        last += max(reach[1] - 1, 0) * step[1]
    return (last + 1) * pointer.element.nbytes


def element_strides(source: Tile) -> tuple[int, int]:
    """Return the distance in elements between rows and between columns of a tile that has no boxes."""
    if source.strides is not None:
        return source.strides
    return (1, source.type.rows) if source.type.blayout == "col_major" else (source.type.cols, 1)


def static(region: Extents, limit: tuple[int, int]) -> tuple[int, int]:
    """Return extents as far as they are known, and the most that they can be where they are not."""
    rows, cols = (n if (n := known(extent)) is not None else most for extent, most in zip(region, limit, strict=True))
    return rows, cols


def _asked(region: Extents) -> tuple[Expr, ...] | None:
    return None if all(known(extent) is not None for extent in region) else region


def _read_slot(m: Machine, source: Tile, region: Extents, shape: tuple[int, int], at: Extents | None) -> Expr:
    slot = source.slot
    assert slot is not None
    if not _is_inside(source, slot, shape, at) or (
        slot.valid is not None and (region != slot.valid or slot not in m.written)
    ):
        m.demote(slot)
        return _stand_in(m, source, region, shape)
    if slot not in m.written:
        slot.needs_value = True
    is_whole = shape == slot.shape and (slot.valid is not None or _asked(region) is None)
    if is_whole:
        return slot.var
    return m.b.tile("slice", slot.var, shape, at or (0, 0), _asked(region))


def _is_inside(source: Tile, slot: Slot, shape: tuple[int, int], at: Extents | None) -> bool:
    """Return whether a variable has all that is read of a tile.

    A position that only the running program knows is checked to lie in the tile, so that must be all of the variable.
    """
    starts = (0, 0) if at is None else (known(at[0]), known(at[1]))
    sides = zip(starts, shape, slot.shape, source.limits, strict=True)
    return all(
        extent <= have == most if start is None else start + extent <= have for start, extent, have, most in sides
    )


def blank_of(tile: Tile) -> Expr:
    """Return the number that stands where nobody looks: zero, or one of elements that have no zero."""
    dtype = tile.type.element.dtype
    return constant(1 if dtype == FP8E8M0 else 0, dtype)


def _stand_in(m: Machine, source: Tile, region: Extents, shape: tuple[int, int]) -> Expr:
    """Return a value as valid as the one that will be read once the tile has bytes."""
    blank = m.b.tile("full", shape, source.type.element.dtype, blank_of(source))
    if _asked(region) is None:
        return blank
    return m.b.tile("set_validshape", blank, region[0], region[1])


def _write_slot(m: Machine, slot: Slot, value: Expr, at: Extents | None, covers: Extents | None) -> None:
    is_first = at is None or all(known(offset) == 0 for offset in at)
    is_all = tile_type(value).valid == slot.shape if slot.valid is None else covers == slot.valid
    if not is_first or not is_all or any(a < b for a, b in zip(tile_type(value).shape, slot.shape, strict=True)):
        m.demote(slot)
        return
    if tile_type(value).shape != slot.shape:
        value = m.b.tile("slice", value, slot.shape, (0, 0), slot.valid)
    type_ = tile_type(slot.var)
    if slot.valid is not None and tile_type(value).valid != type_.valid:
        value = m.b.tile("set_validshape", value, slot.valid[0], slot.valid[1])
    if tile_type(value).memory != type_.memory:
        value = m.b.tile("move", value, type_.memory)
    m.b.assign(slot.var, value)
    m.written.add(slot)


# boxed layouts


@record
class Boxes:
    """How a boxed tile lies: boxes of elements, and the distance along each of the four axes (outer, inner)."""

    rows: int
    cols: int
    strides: tuple[int, int, int, int]
    """Between boxes down, rows inside a box, boxes across, columns inside a box."""


def boxes_of(type_: TileBuf, arch: str) -> Boxes:
    """Return how a boxed tile lies in memory."""
    short = 16 if type_.fractal == 1024 else 32 // type_.element.nbytes
    rows, cols = (16, short) if type_.slayout == "row_major" else (short, 16)
    if type_.rows % rows or type_.cols % cols:
        raise UnsupportedFeatureError(
            f"a {type_.rows} x {type_.cols} tile is not made of whole {rows} x {cols} boxes",
            help="use extents that are multiples of the box, or slayout=none_box",
        )
    down, across = type_.rows // rows, type_.cols // cols
    inner = (cols, 1) if type_.slayout == "row_major" else (1, rows)
    box = rows * cols
    blayout = type_.blayout
    if type_.space is Space.LEFT:  # its layout is the machine's, whatever the text says
        blayout = "col_major" if arch == "a5" else "row_major"
    outer = (across * box, box) if blayout == "row_major" else (box, down * box)
    return Boxes(rows, cols, (outer[0], inner[0], outer[1], inner[1]))


def _boxed_view(m: Machine, source: Tile) -> tuple[Expr, tuple[int, int, int, int]]:
    boxes = boxes_of(source.type, m.arch)
    shape = (source.type.rows // boxes.rows, boxes.rows, source.type.cols // boxes.cols, boxes.cols)
    return bytes_view(m, source.place, shape, boxes.strides), shape


def _read_boxes(m: Machine, source: Tile, region: Extents, shape: tuple[int, int], at: Extents | None = None) -> Expr:
    view, extents = _boxed_view(m, source)
    loaded = m.b.load(view, extents)
    whole = m.b.tile("reshape", loaded, source.limits)
    have = source.type.rows, source.type.cols
    if shape == have and _asked(region) is None:
        return whole
    if _asked(region) is not None and (at is not None or shape[0] > have[0] or shape[1] > have[1]):
        room = have[0] + shape[0], have[1] + shape[1]
        blank = m.b.tile("full", room, source.type.element.dtype, blank_of(source))
        whole = m.b.tile("assemble", blank, whole, (0, 0))
    return m.b.tile("slice", whole, shape, at or (0, 0), _asked(region))


def _write_boxes(m: Machine, target: Tile, value: Expr, at: Extents | None) -> None:
    whole = target.limits
    if tile_type(value).valid != whole:
        old = _read_boxes(m, target, (m.b.index(whole[0]), m.b.index(whole[1])), whole)
        value = m.b.tile("assemble", old, value, at or (0, 0))
    view, extents = _boxed_view(m, target)
    value = m.b.tile("reshape", value, extents)
    m.b.store(view, value)
