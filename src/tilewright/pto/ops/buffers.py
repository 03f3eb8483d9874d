"""Tile buffers: where they are made, resized, and seen under other shapes. Offsets stand in the clause `offsets`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from tilewright.core.expr import Expr, Var
from tilewright.errors import OutOfBoundsError, UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.laws import laid_out
from tilewright.pto.machine.lines import check_begins, refuse_between
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.memory import capacity
from tilewright.pto.machine.tiles import (
    check_range,
    check_reach,
    element_strides,
    elements_at,
    refuse_reach,
    value_type,
)
from tilewright.pto.machine.values import Lowered, Pointer, Tile
from tilewright.pto.module import Op, Value
from tilewright.pto.op import Constants, declare, equal, gives
from tilewright.pto.operand_laws import bound_here, boxed_alike
from tilewright.pto.text.form import Form, Layout, Typing, Word
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import I64, Dims, Ptr, Scalar, Space, TileBuf, Type


def _refuse_range(op: Op, values: Iterable[Value], most: Iterable[int], said: Dims, constants: Constants) -> None:
    for value, limit, extent in zip(values, most, said, strict=False):
        number = constants.get(value)
        if number is None:
            continue
        if not 0 <= number <= limit:
            raise PtoValidShapeError(f"a valid extent of `{op.name}` is {number}", help=f"it is 0 to {limit}")
        if extent is not None and number != extent:
            message = f"a valid extent of `{op.name}` is {number}, and its result has {extent}"
            raise PtoValidShapeError(message, help=f"write {number} in the type, or `?`")


def _refuse_valid(op: Op, values: Iterable[Value], tile: TileBuf, constants: Constants) -> None:
    """Raise where a valid extent is not what the type says it is, or leaves the tile."""
    _refuse_range(op, values, (tile.rows, tile.cols), (tile.valid_rows, tile.valid_cols), constants)


def _equal_space(op: Op, found: Space, expected: Space) -> None:
    if found is not expected:
        raise PtoTypeMismatchError(f"the result of `{op.name}` stays in {expected.loc}, got {found.loc}")


def _is_told_extents(op: Op, constants: Constants) -> None:
    told_extents(op, op.results[0].of(TileBuf), constants)


def told_extents(op: Op, tile: TileBuf, constants: Constants) -> None:
    """Raise where the valid extents of a new tile are said twice, or not at all."""
    for word, key, extent in (("valid_row", "v_row", tile.valid_rows), ("valid_col", "v_col", tile.valid_cols)):
        given = op.clause(word) is not None
        if extent is None and not given:
            raise PtoValidShapeError(f"`{key}` is `?`: `{op.name}` needs `{word}`", help=f"add `{word} = %n`")
        if extent is not None and given:
            message = f"`{key}` is {extent}: `{op.name}` takes no `{word}`"
            raise PtoValidShapeError(message, help=f"write `{key}=?`, or drop `{word}`")
    for word, most in (("valid_row", tile.rows), ("valid_col", tile.cols)):
        _refuse_range(op, op.clause(word) or (), (most,), (None,), constants)


def refuse_large(tile: TileBuf, arch: str) -> None:
    """Refuse a tile that its memory has no room for."""
    most = capacity(tile.space, arch)
    if tile.nbytes > most:
        message = f"a tile of {tile.nbytes} bytes is more than the {most} of `{tile.space.loc}`"
        raise OutOfBoundsError(message, help="make it smaller, and take several")


def at_lines(op: Op, constants: Constants) -> None:
    """Refuse an address that no tile begins at."""
    for address in op.clause("addr") or op.operands[1:]:
        refuse_between(constants.get(address))


def _fits(op: Op, constants: Constants) -> None:
    laid_out(op, constants)
    at_lines(op, constants)
    refuse_large(op.results[0].of(TileBuf), constants.arch)


OPTIONS = {word: Word(Layout.SINGLE, "i") for word in ("addr", "valid_row", "valid_col")}
"""Where a tile lies, and how much of it is valid."""


@declare(
    "pto.alloc_tile",
    Form("", "z", Typing.RESULT, words=OPTIONS, family="tile_buf"),
    rule=_is_told_extents,
    law=_fits,
    is_by_bytes=True,
    example="(%x: w8x40xf32, %y: w8x40xf32 = zeros); %t = {op} : !pto.tile_buf<vec, 8x64xf32, valid=8x40>"
    "; pto.tload ins(%x) outs(%t); pto.tstore ins(%t) outs(%y)",
    means="y = x",
)
def _alloc(m: Machine, op: Op) -> Tile:
    """A tile buffer: at an address, or where there is room."""
    type_ = op.results[0].of(TileBuf)
    addresses = m.clause(op, "addr")
    address = addresses[0] if addresses else None
    refuse_large(type_, m.arch)
    check_address(m, address)
    valid = valid_of(m, op, type_)
    return fresh(m, m.here(op), type_, valid, address)


def check_address(m: Machine, address: Expr | None) -> None:
    """Stop the program where an address that only it knows is none that a tile begins at."""
    if address is not None and known(address) is None:
        check_begins(m.b, address)


def fresh(m: Machine, key: Hashable, type_: TileBuf, valid: tuple[Expr, Expr], address: Expr | None = None) -> Tile:
    """Return a tile: a variable where nothing else sees its bytes, else at its address or where there is room."""
    if address is not None:
        m.memory.sees(type_, address)
        key = type_.space, known(address)
    held = value_type(type_)
    if held is not None and None in held.valid and (address is not None or m.knowledge.resizes):
        held = None  # others may see these bytes, or more of them
    is_seen = address is not None and (known(address) is None or type_.space in m.knowledge.exposed)
    if held is None or key in m.knowledge.placed or is_seen:
        return Tile(type_, valid, pointer=m.memory.place(type_, address))
    if address is not None:
        m.memory.place(type_, address)
    tile = Tile(type_, valid, slot=m.slot(key, held, valid))
    return tile if tile.slot and tile.slot.var.type == held else placed(m, tile)


def valid_of(m: Machine, op: Op, type_: TileBuf) -> tuple[Expr, Expr]:
    """Return the valid extents of a tile, those of the running program in variables where they may change."""
    extents: list[Expr] = []
    for word, extent, most in (
        ("valid_row", type_.valid_rows, type_.rows),
        ("valid_col", type_.valid_cols, type_.cols),
    ):
        given = m.clause(op, word)
        value = given[0] if given else m.b.index(extent or 0)
        check_range(m, value, most, f"`{word}` does not lie within 0 to {most}")
        is_empty = known(value) == 0  # no value has an extent of nothing, but one that is found empty may be
        extents.append(m.b.held(value, word) if is_empty else own(m, value, extent, word))
    return extents[0], extents[1]


def own(m: Machine, value: Expr, extent: int | None, word: str) -> Expr:
    """Return a valid extent of a tile, in a variable of its own where the type leaves it open and tiles are resized."""
    return m.b.held(value, word) if extent is None and m.knowledge.resizes else value


def _is_open(op: Op, constants: Constants) -> None:
    tile = op.operands[0].of(TileBuf)
    if tile.valid_rows is not None or tile.valid_cols is not None:
        raise PtoValidShapeError("`pto.set_validshape` needs a tile whose valid region is `?x?`")
    _refuse_valid(op, op.operands[1:], tile, constants)


@declare(
    "pto.set_validshape",
    Form("zii", untyped=2),
    rule=_is_open,
    law=bound_here,
    is_by_bytes=True,
    example="(%x: w8x64xf32, %n: index = 5)"
    "; %t = pto.alloc_tile valid_row = %c8 valid_col = %c64 : !pto.tile_buf<vec, 8x64xf32, valid=?x?>"
    "; pto.tload ins(%x) outs(%t)"
    "; {op} %t, %n, %c64 : !pto.tile_buf<vec, 8x64xf32, valid=?x?>"
    "; %r = pto.tile_valid_rows %t : !pto.tile_buf<vec, 8x64xf32, valid=?x?> -> index",
    means="r = n",
)
def _set_valid(m: Machine, op: Op, tile: Tile, rows: Expr, cols: Expr) -> None:
    """Change how many of a tile's rows and columns are valid."""
    if not m.placed(tile):
        return
    for extent, given, most in zip(tile.valid, (rows, cols), tile.limits, strict=True):
        check_range(m, m.b.index(given), most, f"a valid extent does not lie within 0 to {most}")
        if isinstance(extent, Var) and m.knowledge.resizes:
            m.b.assign(extent, m.b.index(given))
        m.knowledge.resizes = True


def placed(m: Machine, tile: Tile) -> Tile:
    """Return a tile that stands in for one that turns out to need bytes, until the function is lowered again."""
    assert tile.slot is not None
    m.demote(tile.slot)
    pointer = m.memory.pointer(tile.type.space, tile.type.element, m.b.index(0))
    return replace(tile, slot=None, pointer=pointer)


def _is_window(op: Op, constants: Constants) -> None:
    tile, window = op.operands[0].of(TileBuf), op.results[0].of(TileBuf)
    sizes = op.attributes["sizes"]
    if not isinstance(sizes, tuple) or len(sizes) != 2 or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise PtoAttributeError(f"`sizes` of `{op.name}` are two positive numbers")
    rows, cols = sizes
    assert isinstance(rows, int) and isinstance(cols, int)
    if rows > tile.rows or cols > tile.cols:
        raise PtoValidShapeError(f"a window of {rows}x{cols} does not fit in {tile.rows}x{tile.cols}")
    equal(op, "element type", window.element, tile.element)
    _equal_space(op, window.space, tile.space)
    if sizes != (window.rows, window.cols):
        message = f"a window of {rows}x{cols} is no tile of {window.rows}x{window.cols}"
        raise PtoOperandError(message, help="the result has the sizes of the window")
    _refuse_valid(op, op.clause("valid") or (), window, constants)


def _window_of(op: Op, _: Constants) -> Type:
    """Return the type old text leaves out: what the sizes of a window make of its tile."""
    tile, sizes = op.operands[0].type, op.attributes.get("sizes")
    if not isinstance(tile, TileBuf) or not isinstance(sizes, tuple) or len(sizes) != 2:
        return tile
    rows, cols = (size if isinstance(size, int) and size > 0 else 1 for size in sizes)
    valid = (rows, cols) if op.clause("valid") is None else (None, None)
    return replace(tile, rows=rows, cols=cols, valid_rows=valid[0], valid_cols=valid[1])


_OFFSETS = {"offsets": Word(Layout.INDEX, "ii", required=True), "valid": Word(Layout.BRACKET, "ii")}
_WINDOW = Form("z", "z", words=_OFFSETS, numbers=("sizes",), index="offsets", family="tile_buf")


@declare(
    "pto.subview subset",
    _WINDOW,
    rule=_is_window,
    left_out=_window_of,
    is_by_bytes=True,
    example="(%x: t8x64xf32, %out: t4x16xf32); %w = {op} %x[%c4, %c8] sizes [4, 16] -> t4x16xf32"
    "; pto.tmov ins(%w) outs(%out)",
    means="out = x[4:8, 8:24]",
)
def _subview(m: Machine, op: Op, tile: Tile) -> Lowered:
    """A window of a tile, in the same bytes."""
    type_ = op.results[0].of(TileBuf)
    at = _pair(m, op, "offsets")
    assert at is not None
    return part(m, tile, type_, at, _pair(m, op, "valid"))


def part(m: Machine, tile: Tile, type_: TileBuf, at: tuple[Expr, Expr], told: tuple[Expr, Expr] | None) -> Tile:
    """Return a window of a tile from a position on, as much of it valid as is told, or as its type says."""
    tile, shape = tile if tile.slot is None else placed(m, tile), (type_.rows, type_.cols)
    if tile.type.slayout != "none_box" and tile.strides is None:
        raise UnsupportedFeatureError("a window on a boxed tile has no strides", help="use pto.textract")
    refuse_reach(tile, shape, at)
    check_reach(m, tile, (m.b.index(type_.rows), m.b.index(type_.cols)), at)
    place = elements_at(m, tile, at)
    known_valid = (type_.valid_rows or type_.rows, type_.valid_cols or type_.cols)
    valid = told or (m.b.index(known_valid[0]), m.b.index(known_valid[1]))
    for extent, most in zip(valid, shape, strict=True):
        check_range(m, extent, most, f"a valid extent does not lie within 0 to {most}")
    held = own(m, valid[0], type_.valid_rows, "valid_row"), own(m, valid[1], type_.valid_cols, "valid_col")
    return Tile(type_, held, pointer=place, strides=element_strides(tile))


def _pair(m: Machine, op: Op, word: str) -> tuple[Expr, Expr] | None:
    found = m.clause(op, word)
    return (found[0], found[1]) if found else None


def _keeps_bytes(op: Op, _: Constants) -> None:
    tile, other = op.operands[0].of(TileBuf), op.results[0].of(TileBuf)
    _equal_space(op, other.space, tile.space)
    if tile.nbytes != other.nbytes:
        raise PtoTypeMismatchError(f"`{op.name}` keeps the bytes, got {tile.nbytes} and {other.nbytes}")


@declare(
    "pto.treshape",
    Form("z", "z", family="tile_buf"),
    rule=_keeps_bytes,
    law=boxed_alike,
    is_by_bytes=True,
    example="(%x: t8x64xf32); %r = {op} %x -> t16x32xf32",
    means="x.reshape(16, 32)",
)
def _reshape(m: Machine, op: Op, tile: Tile) -> Lowered:
    """The same bytes under another shape."""
    type_ = op.results[0].of(TileBuf)
    tile = tile if tile.slot is None else placed(m, tile)
    if _has_gaps(tile):
        raise UnsupportedFeatureError(
            "a window with gaps between its rows has no other shape", help="copy it with pto.tmov, or pto.textract"
        )
    rows = m.b.index(type_.valid_rows) if type_.valid_rows is not None else own(m, tile.valid[0], None, "valid_row")
    cols = m.b.index(type_.valid_cols) if type_.valid_cols is not None else own(m, tile.valid[1], None, "valid_col")
    return Tile(type_, (rows, cols), pointer=replace(tile.place, element=type_.element))


def _is_seen_as(op: Op, _: Constants) -> None:
    tile, other = op.operands[0].of(TileBuf), op.results[0].of(TileBuf)
    same = replace(tile, element=other.element)
    if same != other:
        message = f"`{op.name}` changes nothing but the element type, got {brief_text(tile)} to {brief_text(other)}"
        raise PtoTypeMismatchError(message, help=f"write {brief_text(same)}")
    if other.nbytes > tile.nbytes:
        message = f"`{op.name}` needs {other.nbytes} bytes, `%{op.operands[0].name}` has {tile.nbytes}"
        raise PtoTypeMismatchError(message, help="see it as smaller elements, or use `pto.treshape`")


@declare(
    "pto.bitcast",
    Form("z", "z", family="tile_buf"),
    rule=_is_seen_as,
    is_by_bytes=True,
    widens=0,
    example="(%x: t8x64xf32); %r = {op} %x -> t8x64xi32",
    means='x.view("i4")',
)
def _see_as(m: Machine, op: Op, tile: Tile) -> Lowered:
    """The same bytes as elements of another type."""
    type_ = op.results[0].of(TileBuf)
    tile = tile if tile.slot is None else placed(m, tile)
    if tile.strides is not None and tile.type.element.nbytes != type_.element.nbytes and _has_gaps(tile):
        message = "a window with gaps between its rows has no elements of another size"
        raise UnsupportedFeatureError(message, help="copy it with pto.tmov, or pto.textract")
    return replace(tile, type=type_, pointer=replace(tile.place, element=type_.element))


def _keeps_type(op: Op, _: Constants) -> None:
    equal(op, "result", op.results[0].type, op.operands[0].type)
    if op.operands[1].type != I64:
        found = op.operands[1].type
        raise PtoTypeMismatchError(f"`{op.name}` takes an address of i64, got {found}", help="extend it to i64")


@declare(
    "pto.tassign",
    Form("zi", "z", family="tile_buf", untyped=1),
    rule=_keeps_type,
    law=at_lines,
    is_by_bytes=True,
    counts=I64,
    example="(%x: t8x64xf32, %out: t8x64xf32); %t = {op} %x, %n4096 -> t8x64xf32"
    "; pto.texpands ins(%x1.0) outs(%t); pto.tmov ins(%t) outs(%out)",
    means="out[:] = 1",
)
def _assign(m: Machine, op: Op, tile: Tile, address: Expr) -> Tile:
    """A tile of the same type at another address."""
    check_address(m, address)
    return fresh(m, m.here(op), op.results[0].of(TileBuf), tile.valid, m.b.index(address))


def _has_gaps(tile: Tile) -> bool:
    """Return whether a tile is a window whose elements do not lie side by side."""
    packed_strides = element_strides(replace(tile, strides=None))
    steps = zip(tile.limits, element_strides(tile), packed_strides, strict=True)
    return any(extent > 1 and stride != packed for extent, stride, packed in steps)


def _start_of(op: Op) -> Ptr:
    tile = op.operands[0].of(TileBuf)
    return Ptr(tile.element, tile.space)


@declare(
    "pto.tile_buf_addr",
    Form("z", "p", family="ptr"),
    rule=gives(_start_of),
    is_by_bytes=True,
    example="(%x: t8x64xf32); %p = {op} %x -> !pto.ptr<f32, ub>; %r = pto.load_scalar %p[%c3] -> f32",
    means="r = x.ravel()[3]",
)
def _address(m: Machine, op: Op, tile: Tile) -> Lowered:
    """The address of a tile's first element."""
    return start_of(m, tile)


def start_of(m: Machine, tile: Tile) -> Pointer:
    """Return the address of a tile's first element."""
    if not m.placed(tile):
        return m.memory.pointer(tile.type.space, tile.type.element, m.b.index(0))
    if tile.place.arena is not None:
        tile.place.arena.touch(tile.place.offset, None)
    return replace(tile.place, element=tile.type.element)


@declare(
    "pto.tile_valid_rows tile_valid_cols",
    Form("z", "i"),
    is_by_bytes=True,
    means={"tile_valid_rows": "x.shape[0]", "tile_valid_cols": "x.shape[1]"},
)
def _valid_size(m: Machine, op: Op, tile: Tile) -> Expr:
    """How many rows or columns are valid when this is asked."""
    return m.b.cast(tile.valid[op.name.endswith("cols")], op.results[0].of(Scalar).dtype)
