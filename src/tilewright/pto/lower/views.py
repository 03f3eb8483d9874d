"""Views: pointers, windows on global memory, and tile buffers."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.expr import Expr, Var, constant
from tilewright.core.extents import bounds
from tilewright.dtypes import FP32
from tilewright.errors import OutOfBoundsError, UnsupportedFeatureError
from tilewright.pto.lower.build import known
from tilewright.pto.lower.machine import Machine, lowers
from tilewright.pto.lower.memory import capacity
from tilewright.pto.lower.tiles import (
    bytes_view,
    check_range,
    check_reach,
    element_strides,
    refuse_reach,
    replaced,
    value_type,
)
from tilewright.pto.lower.values import Lowered, Number, Pointer, Tile, View
from tilewright.pto.module import Op
from tilewright.pto.types import INDEX, Ptr, Scalar, Space, TileBuf


@lowers("pto.castptr")
def _castptr(m: Machine, op: Op) -> Lowered:
    value, type_ = m.values[op.operands[0]], op.results[0].type
    if isinstance(value, Pointer):
        if isinstance(type_, Ptr):
            return replace(value, element=type_.element)
        if value.arena is None:
            where = "global memory" if value.space is Space.GM else "a tile without `addr`"
            raise UnsupportedFeatureError(
                f"the address of {where} is not known here", help="offset the pointer with pto.addptr"
            )
        assert isinstance(type_, Scalar)
        return Number(m.b.cast(value.offset, type_.dtype))
    assert isinstance(type_, Ptr) and isinstance(value, Number)
    if type_.space is Space.GM:
        raise UnsupportedFeatureError("a number is no address of global memory", help="pass a pointer to the kernel")
    m.knowledge.exposed.add(type_.space)
    return m.memory.pointer(type_.space, type_.element, m.b.index(value.expr))


@lowers("pto.addptr")
def _addptr(m: Machine, op: Op) -> Pointer:
    pointer = m.get(op.operands[0], Pointer)
    return moved(m, pointer, m.index(op.operands[1]))


def moved(m: Machine, pointer: Pointer, elements: Expr) -> Pointer:
    """Return a pointer so many elements further on."""
    number = known(elements)
    if number is not None and abs(number) * pointer.element.nbytes >= 1 << 63:
        raise OutOfBoundsError(f"element {number} of {pointer.element} lies outside every memory")
    return replaced(pointer, m.b.add(pointer.offset, _product(m, elements, m.b.index(pointer.element.nbytes))))


def _product(m: Machine, lhs: Expr, rhs: Expr) -> Expr:
    """Return a product of offsets and strides; one that may be more than any memory has is checked before it is used.

    Floats tell: what they lose is nothing beside what they are held to.
    """
    made = m.b.scalar("mul", lhs, rhs)
    if known(made) is None and bounds(made) is None:
        size = m.b.scalar("mul", m.b.cast(lhs, FP32), m.b.cast(rhs, FP32))
        inside = (m.b.scalar("lt", size, constant(FARTHEST)), m.b.scalar("gt", size, constant(-FARTHEST)))
        m.b.do("system.device_assert", condition=m.b.scalar("and_", *inside), message="this lies outside every memory")
    return made


FARTHEST = float(1 << 60)
"""No offset into memory is more."""


@lowers("pto.load", "pto.load_scalar")
def _load(m: Machine, op: Op) -> Number:
    pointer = moved(m, m.get(op.operands[0], Pointer), (m.clause(op, "offset") or (m.b.index(0),))[0])
    one = m.b.index(1)
    view = bytes_view(m, pointer, (one,), (one,))
    return Number(m.b.op("tensor.read", x=view, indices=(0,)))


@lowers("pto.store", "pto.store_scalar")
def _store(m: Machine, op: Op) -> None:
    pointer = moved(m, m.get(op.operands[1], Pointer), (m.clause(op, "offset") or (m.b.index(0),))[0])
    one = m.b.index(1)
    view = bytes_view(m, pointer, (one,), (one,))
    m.b.do("tensor.write", x=view, indices=(0,), value=m.expr(op.operands[0]))


@lowers("pto.make_tensor_view")
def _make_view(m: Machine, op: Op) -> View:
    shape, strides = m.clause(op, "shape"), m.clause(op, "strides")
    assert shape is not None and strides is not None
    return View(m.get(op.operands[0], Pointer), shape, strides)


@lowers("pto.partition_view")
def _partition(m: Machine, op: Op) -> View:
    view = m.get(op.operands[0], View)
    offsets, sizes = m.clause(op, "offsets"), m.clause(op, "sizes")
    assert offsets is not None and sizes is not None
    start = m.b.index(0)
    for offset, stride in zip(offsets, view.strides, strict=True):
        start = m.b.add(start, _product(m, offset, stride))
    return View(moved(m, view.pointer, start), sizes, view.strides)


@lowers("pto.alloc_tile")
def _alloc(m: Machine, op: Op) -> Tile:
    type_ = op.results[0].type
    assert isinstance(type_, TileBuf)
    addresses = m.clause(op, "addr")
    address = addresses[0] if addresses else None
    if type_.nbytes > capacity(type_.space, m.arch):
        message = (
            f"a tile of {type_.nbytes} bytes is more than the {capacity(type_.space, m.arch)} of `{type_.space.loc}`"
        )
        raise OutOfBoundsError(message)
    valid = _valid(m, op, type_)
    if address is not None:
        m.memory.sees(type_, address)
    number = known(address) if address is not None else None
    key = m.here(op) if address is None else (type_.space, number)
    held = value_type(type_)
    if held is not None and None in held.valid and (address is not None or m.knowledge.resizes):
        held = None  # others may see these bytes, or more of them
    if held is None or key in m.knowledge.placed or (address is not None and number is None):
        return Tile(type_, valid, pointer=m.memory.place(type_, address))
    if address is not None and type_.space in m.knowledge.exposed:
        return Tile(type_, valid, pointer=m.memory.place(type_, address))
    if address is not None:
        m.memory.place(type_, address)
    tile = Tile(type_, valid, slot=m.slot(key, held, valid))
    return tile if tile.slot and tile.slot.var.type == held else _placed(m, tile)


def _valid(m: Machine, op: Op, type_: TileBuf) -> tuple[Expr, Expr]:
    """Return the valid extents of a tile, those of the running program in variables where they may change."""
    extents: list[Expr] = []
    for word, extent, most in (
        ("valid_row", type_.valid_rows, type_.rows),
        ("valid_col", type_.valid_cols, type_.cols),
    ):
        given = m.clause(op, word)
        if extent is None and given is None:
            raise UnsupportedFeatureError(
                f"the type leaves `{word}` open and nothing gives it", help=f"write `{word} = %n`"
            )
        value = given[0] if given else m.b.index(extent or 0)
        check_range(m, value, most, f"`{word}` does not lie within 0 to {most}")
        is_empty = known(value) == 0  # no value has an extent of nothing, but one that is found empty may be
        extents.append(_copied(m, value, word) if is_empty else _own(m, value, extent, word))
    return extents[0], extents[1]


def _own(m: Machine, value: Expr, extent: int | None, word: str) -> Expr:
    """Return a valid extent of a tile, in a variable of its own where the type leaves it open and tiles are resized."""
    return _copied(m, value, word) if extent is None and m.knowledge.resizes else value


def _copied(m: Machine, value: Expr, word: str) -> Expr:
    var = m.b.variable(value.type, word)
    m.b.assign(var, value)
    return var


@lowers("pto.set_validshape")
def _set_valid(m: Machine, op: Op) -> None:
    tile = m.get(op.operands[0], Tile)
    if tile.slot is not None:
        m.demote(tile.slot)
        return
    for extent, given, most in zip(tile.valid, op.operands[1:], (tile.type.rows, tile.type.cols), strict=True):
        check_range(m, m.index(given), most, f"a valid extent does not lie within 0 to {most}")
        if isinstance(extent, Var) and m.knowledge.resizes:
            m.b.assign(extent, m.index(given))
        m.knowledge.resizes = True


def _placed(m: Machine, tile: Tile) -> Tile:
    """Return a tile that stands in for one that turns out to need bytes, until the function is lowered again."""
    assert tile.slot is not None
    m.demote(tile.slot)
    pointer = m.memory.pointer(tile.type.space, tile.type.element, m.b.index(0))
    return replace(tile, slot=None, pointer=pointer)


@lowers("pto.subview", "pto.subset")
def _subview(m: Machine, op: Op) -> Lowered:
    tile, type_ = m.get(op.operands[0], Tile), op.results[0].type
    assert isinstance(type_, TileBuf)
    if tile.slot is not None:
        tile = _placed(m, tile)
    at = m.clause(op, "offsets")
    assert at is not None
    if tile.type.slayout != "none_box" and tile.strides is None:
        raise UnsupportedFeatureError("a window on a boxed tile has no strides", help="use pto.textract")
    refuse_reach(tile, (type_.rows, type_.cols), (at[0], at[1]))
    check_reach(m, tile, (m.b.index(type_.rows), m.b.index(type_.cols)), (at[0], at[1]))
    strides, size = element_strides(tile), type_.element.nbytes
    offset = tile.place.offset
    for index, stride in zip(at, strides, strict=True):
        offset = m.b.add(offset, m.b.mul(index, stride * size))
    asked = m.clause(op, "valid")
    known_valid = (type_.valid_rows or type_.rows, type_.valid_cols or type_.cols)
    valid = (asked[0], asked[1]) if asked else (m.b.index(known_valid[0]), m.b.index(known_valid[1]))
    for extent, most in zip(valid, (type_.rows, type_.cols), strict=True):
        check_range(m, extent, most, f"a valid extent does not lie within 0 to {most}")
    own = _own(m, valid[0], type_.valid_rows, "valid_row"), _own(m, valid[1], type_.valid_cols, "valid_col")
    return Tile(type_, own, pointer=replaced(tile.place, offset), strides=strides)


@lowers("pto.treshape")
def _reshape(m: Machine, op: Op) -> Lowered:
    tile, type_ = m.get(op.operands[0], Tile), op.results[0].type
    assert isinstance(type_, TileBuf)
    if tile.slot is not None:
        tile = _placed(m, tile)
    if _has_gaps(tile):
        raise UnsupportedFeatureError(
            "a window with gaps between its rows has no other shape", help="copy it with pto.tmov, or pto.textract"
        )
    rows = m.b.index(type_.valid_rows) if type_.valid_rows is not None else _own(m, tile.valid[0], None, "valid_row")
    cols = m.b.index(type_.valid_cols) if type_.valid_cols is not None else _own(m, tile.valid[1], None, "valid_col")
    if type_.nbytes > tile.type.nbytes:
        raise UnsupportedFeatureError(f"{type_.nbytes} bytes cannot be seen in a tile of {tile.type.nbytes}")
    return Tile(type_, (rows, cols), pointer=replace(tile.place, element=type_.element))


def _has_gaps(tile: Tile) -> bool:
    """Return whether a tile is a window whose elements do not lie side by side."""
    steps = zip((tile.type.rows, tile.type.cols), element_strides(tile), _packed_strides(tile), strict=True)
    return any(extent > 1 and stride != packed for extent, stride, packed in steps)


def _packed_strides(tile: Tile) -> tuple[int, int]:
    return element_strides(replace(tile, strides=None))


@lowers("pto.tile_buf_addr")
def _address(m: Machine, op: Op) -> Lowered:
    tile, type_ = m.get(op.operands[0], Tile), op.results[0].type
    assert isinstance(type_, Ptr)
    if tile.slot is not None:
        m.demote(tile.slot)
        return m.memory.pointer(type_.space, type_.element, m.b.index(0))
    if tile.place.arena is not None:
        tile.place.arena.touch(tile.place.offset, None)
    return replace(tile.place, element=type_.element)


@lowers("pto.get_block_idx")
def _block_index(m: Machine, op: Op) -> Number:
    return _block_number(m, op, m.blocks.index)


@lowers("pto.get_block_num")
def _block_count(m: Machine, op: Op) -> Number:
    return _block_number(m, op, m.blocks.count)


@lowers("pto.get_subblock_idx")
def _subblock_index(m: Machine, op: Op) -> Number:
    return _block_number(m, op, m.b.index(0))


@lowers("pto.get_subblock_num")
def _subblock_count(m: Machine, op: Op) -> Number:
    return _block_number(m, op, m.b.index(1))


def _block_number(m: Machine, op: Op, number: Expr) -> Number:
    type_ = op.results[0].type
    assert isinstance(type_, Scalar)
    return Number(number if type_ is INDEX else m.b.cast(number, type_.dtype))


SYNCHRONIZATION = (
    *("barrier", "set_flag", "wait_flag", "set_flag_dyn", "wait_flag_dyn", "sync.set", "sync.wait", "mem_bar"),
    *("set_ffts", "get_buf", "rls_buf", "record_event", "wait_event", "tsync", "tprefetch"),
)


@lowers(*(f"pto.{name}" for name in SYNCHRONIZATION))
def _in_order(m: Machine, op: Op) -> None:
    """Order between pipes: a block runs its ops one after the other, so there is nothing to wait for."""
