"""Memrefs: the buffers of text between a compiler's passes, and the tiles that are bound to them.

One in a local memory is a tile, one in global memory a pointer or a window, as its type says; ops on tiles and windows
take them as such. What names no memory, or leaves the extents of a new buffer open, is refused where it would run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tilewright.core.expr import Expr
from tilewright.errors import OutOfBoundsError, UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError, PtoUnsupportedOpError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import check_range, moved, product
from tilewright.pto.machine.values import Lowered, Pointer, Tile, View
from tilewright.pto.memrefs import PointerMemRef, TileMemRef, begins_its_buffer
from tilewright.pto.module import Enumerated, Op, Value
from tilewright.pto.op import Constants, declare
from tilewright.pto.ops.buffers import check_address, fresh, own, part, placed, refuse_large, start_of
from tilewright.pto.text.form import Typing, free
from tilewright.pto.text.free import OPERAND, bracketed, words_of
from tilewright.pto.text.typetext import CHOICES, choice
from tilewright.pto.types import Dims, Ptr, TensorView, TileBuf

_CONFIGURED = re.compile(r"(\w+)\s*=\s*(?:#pto\.\w+<\s*)?(\w+)")
_FLAT, _PART = "memref<?xf32, #pto.address_space<gm>>", "memref<4x64xf32, strided<[64, 1], offset: ?>, {space}>"
_VEC, _GM = "#pto.address_space<vec>", "#pto.address_space<gm>"
_TILE = f"memref<8x64xf32, {_VEC}>"


def _tile_made(op: Op) -> TileBuf:
    """Return the tile buffer that the result of an op is."""
    type_ = op.results[0].type
    if isinstance(type_, TileMemRef):
        return type_.tile
    if isinstance(type_, TileBuf):
        return type_
    message = f"`{op.name}` cannot be run here: {type_} is no buffer of a local memory"
    raise PtoUnsupportedOpError(message, help=f"say its extents and its memory, as in `{_TILE}`")


def _whole(m: Machine, type_: TileBuf) -> tuple[Expr, Expr]:
    return m.b.index(type_.rows), m.b.index(type_.cols)


@declare(
    "memref.alloc",
    free("i*", "r", typing=Typing.RESULT),
    is_by_bytes=True,
    example=f"(%x: w8x64xf32, %y: w8x64xf32 = zeros); %t = {{op}}() : {_TILE}"
    "; pto.tload ins(%x) outs(%t); pto.tadd ins(%t, %t) outs(%t); pto.tstore ins(%t) outs(%y)",
    means="y = x + x",
)
def _alloc(m: Machine, op: Op) -> Tile:
    """A buffer of a local memory, where there is room."""
    return _new(m, op)


def _new(m: Machine, op: Op) -> Tile:
    type_ = _tile_made(op)
    refuse_large(type_, m.arch)
    return fresh(m, m.here(op), type_, _whole(m, type_))


@declare(
    "pto.declare_tile_memref",
    free("", "r", typing=Typing.RESULT),
    is_by_bytes=True,
    example=f"(%x: w8x64xf32, %y: w8x64xf32 = zeros); %t = {{op}} -> {_TILE}"
    "; pto.tload ins(%x) outs(%t); pto.tstore ins(%t) outs(%y)",
    means="y = x",
)
def _declare_tile(m: Machine, op: Op) -> Tile:
    """A buffer that will hold what is taken from a pipe."""
    return _new(m, op)


# the same bytes, seen otherwise


def keeps_elements(op: Op, _: Constants) -> None:
    """Raise where both sides are memrefs and differ in what they hold or in where that lies."""
    source, result = op.operands[0].type, op.results[0].type
    for what, word in (("element", "elements"), ("space", "memory"), ("rows", "rows"), ("cols", "columns")):
        was, now = getattr(source, what, None), getattr(result, what, None)
        if None not in (was, now) and was != now:
            raise PtoTypeMismatchError(f"`{op.name}` keeps the {word}, got {source} to {result}")
    if isinstance(source, TensorView) and isinstance(result, TensorView):
        _refuse_extents(op, source.shape, result.shape)


def _refuse_extents(op: Op, found: Dims, said: Dims) -> None:
    pairs = zip(found, said, strict=False)
    if len(found) != len(said) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
        shown = "x".join("?" if extent is None else str(extent) for extent in found)
        raise PtoOperandError(f"`{op.name}` makes {shown} elements of {op.results[0].type}")


@declare(
    "memref.cast",
    free("r", "r", "to", Typing.RESULT),
    rule=keeps_elements,
    is_by_bytes=True,
    example=f"(%x: w8x64xf32, %y: w8x64xf32 = zeros); %t = memref.alloc() : {_TILE}"
    f"; %o = {{op}} %t : {_TILE} to memref<?x?xf32, {_VEC}>; %s = {{op}} %o : memref<?x?xf32, {_VEC}> to {_TILE}"
    "; pto.tload ins(%x) outs(%s); pto.tstore ins(%t) outs(%y)",
    means="y = x",
)
def _cast(m: Machine, op: Op, value: Lowered) -> Lowered:
    """The same buffer with fewer or more of its extents known."""
    if isinstance(value, Pointer) and not isinstance(op.results[0].type, Ptr):
        raise UnsupportedFeatureError("nobody knows how long this memref is", help="use `memref.reinterpret_cast`")
    return _same(op, value)


@declare(
    "pto.simd.tile_to_memref",
    free("z", "r", "to", Typing.RESULT),
    rule=keeps_elements,
    is_by_bytes=True,
    example=f"(%x: t8x64xf32, %out: t8x64xf32); %t = {{op}} %x : t8x64xf32 to {_TILE}; pto.tneg ins(%t) outs(%out)",
    means="out = -x",
)
def _tile_to_memref(m: Machine, op: Op, tile: Tile) -> Lowered:
    """The bytes of a tile as a memref."""
    return _same(op, tile)


def _same(op: Op, value: Lowered) -> Lowered:
    """Return a value that keeps its extents, if those are what its new type says."""
    type_ = op.results[0].type
    if isinstance(value, Tile) and isinstance(type_, TileMemRef) and value.limits != (type_.rows, type_.cols):
        shown = "x".join(map(str, value.limits))
        raise PtoTypeMismatchError(f"a buffer of {shown} elements is no {type_}")
    return value


def _configured(op: Op, type_: TileBuf) -> TileBuf:
    """Return a tile buffer laid out as the attribute `config` of an op says."""
    config = op.attributes.get("config")
    if config is not None and not isinstance(config, Enumerated):
        message = f"`config` of `{op.name}` is {config!r}"
        raise PtoAttributeError(message, help="as in #pto.tile_buf_config<blayout=row_major, slayout=none_box>")
    words = dict(_CONFIGURED.findall(config.word if isinstance(config, Enumerated) else ""))
    words["fractal"] = words.pop("s_fractal_size", str(type_.fractal))
    settled = {key: choice(key, words[key]) for key in CHOICES if key in words}
    kept = {key: type(getattr(type_, key))(word) for key, word in settled.items()}
    return replace(type_, **kept)


def _valid(m: Machine, op: Op, given: Sequence[Expr], otherwise: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    """Return how many rows and columns an op says are valid, or what holds where it says nothing."""
    if len(given) not in (0, 2):
        raise PtoOperandError(f"`{op.name}` is given {len(given)} valid extents", help="give it rows and columns")
    return (m.b.index(given[0]), m.b.index(given[1])) if given else otherwise


def _bound(m: Machine, tile: Tile, type_: TileBuf, valid: tuple[Expr, Expr]) -> Tile:
    """Return the bytes of a tile under a type, valid as far as is said."""
    if (type_.rows, type_.cols) != tile.limits:
        raise PtoTypeMismatchError(f"{tile.type} cannot be seen as {type_}: extents stay as they are")
    if tile.type == type_ and valid == tile.valid:
        return tile
    rows, cols = _checked(m, type_, valid)
    tile = tile if tile.slot is None else placed(m, tile)
    held = own(m, rows, type_.valid_rows, "valid_row"), own(m, cols, type_.valid_cols, "valid_col")
    return Tile(type_, held, pointer=tile.place, strides=tile.strides)


def _checked(m: Machine, type_: TileBuf, valid: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    """Return valid extents; stop the program where they leave a tile."""
    for extent, most in zip(valid, (type_.rows, type_.cols), strict=True):
        check_range(m, extent, most, f"a valid extent does not lie within 0 to {most}")
    return valid


def _valid_as(type_: TileBuf, valid: tuple[Expr, Expr]) -> TileBuf:
    """Return a type that says as much of what is valid as is known."""
    return replace(type_, valid_rows=known(valid[0]), valid_cols=known(valid[1]))


@declare(
    "pto.bind_tile",
    free("ri?i?", "r", typing=Typing.RESULT),
    rule=keeps_elements,
    is_by_bytes=True,
    example=f"(%x: w8x64xf32, %n: index = 5, %y: t8x64xf32); %m = memref.alloc() : {_TILE}; pto.tload ins(%x) outs(%m)"
    f"; %t = {{op}} %m, %n, %c64 : {_TILE} -> {_TILE}; pto.texp ins(%t) outs(%t); pto.tmov ins(%m) outs(%y)",
    means="y = np.where(np.arange(8)[:, None] < n, np.exp(x), x)",
)
def _bind(m: Machine, op: Op, tile: Tile, *extents: Expr) -> Tile:
    """The bytes of a buffer laid out as `config` says, as many of its rows and columns valid as are given."""
    type_, valid = _configured(op, _tile_made(op)), _valid(m, op, extents, tile.valid)
    return _bound(m, tile, _valid_as(type_, valid), valid)


@declare(
    "pto.materialize_tile",
    free("ri?i?", "z", typing=Typing.RESULT),
    rule=keeps_elements,
    is_by_bytes=True,
    example=f"(%x: w8x64xf32, %n: index = 5); %m = memref.alloc() : {_TILE}; pto.tload ins(%x) outs(%m)"
    f"; %t = {{op}} %m, %n, %c64 : {_TILE} -> !pto.tile_buf<vec, 8x64xf32, valid=?x?>"
    "; %r = pto.tile_valid_rows %t : !pto.tile_buf<vec, 8x64xf32, valid=?x?> -> index",
    means="r = n",
)
def _materialize(m: Machine, op: Op, tile: Tile, *extents: Expr) -> Tile:
    """The bytes of a buffer as a tile, as many of its rows and columns valid as are given."""
    return _as_tile(m, op, tile, extents)


def _as_tile(m: Machine, op: Op, tile: Tile, extents: Sequence[Expr] = ()) -> Tile:
    type_, (rows, cols) = op.results[0].of(TileBuf), _valid(m, op, extents, tile.valid)
    rows = rows if type_.valid_rows is None else m.b.index(type_.valid_rows)
    cols = cols if type_.valid_cols is None else m.b.index(type_.valid_cols)
    return _bound(m, tile, type_, (rows, cols))


@declare(
    "pto.pointer_cast",
    free("i*", "r", typing=Typing.RESULT),
    is_by_bytes=True,
    example=f"(%x: w8x64xf32, %y: w8x64xf32 = zeros); %t = {{op}}(%n4096) : {_TILE}; %u = {{op}}(%n4096) : {_TILE}"
    "; pto.tload ins(%x) outs(%t); pto.tstore ins(%u) outs(%y)",
    means="y = x",
)
def _pointer_cast(m: Machine, op: Op, *operands: Expr) -> Tile:
    """A buffer at an address of a local memory, as many of its rows and columns valid as are given."""
    words = words_of(op)
    count = words[: words.index(")")].count(OPERAND) if ")" in words else 0
    if count != 1:
        message = f"`{op.name}` has {count} addresses, of which a loop would take one after the other"
        raise PtoUnsupportedOpError(message, help="give it the one that holds here")
    type_ = _configured(op, _tile_made(op))
    refuse_large(type_, m.arch)
    check_address(m, operands[0])
    valid = _checked(m, type_, _valid(m, op, operands[1:], _whole(m, type_)))
    return fresh(m, m.here(op), _valid_as(type_, valid), valid, m.b.index(operands[0]))


def converted(m: Machine, op: Op, value: Lowered) -> Lowered:
    """Return a memref as the tile or the pointer that the result of an op is."""
    type_ = op.results[0].type
    if isinstance(value, Tile) and isinstance(type_, TileBuf):
        return _as_tile(m, op, value)
    pointer = start_of(m, value) if isinstance(value, Tile) else value.pointer if isinstance(value, View) else value
    if not isinstance(pointer, Pointer) or not isinstance(type_, Ptr):
        raise PtoTypeMismatchError(f"{op.operands[0].type} is no {type_}")
    return pointer


# windows


def _numbers(m: Machine, items: Iterable[int | Value]) -> tuple[Expr, ...]:
    return tuple(m.b.index(item) if isinstance(item, int) else m.index(item) for item in items)


def _has_its_sizes(op: Op, constants: Constants) -> None:
    """Raise where what stands in brackets is not what the result's extents are."""
    groups, result = bracketed(op), op.results[0].type
    places = 1 if op.name == "memref.reinterpret_cast" or not groups else len(groups[-1])
    if len(groups) != 3 or len(groups[1]) != len(groups[2]) or len(groups[0]) != places:
        help = f"it has {'one offset' if places == 1 else 'offsets'}, sizes and strides, as many sizes as strides"
        raise PtoOperandError(f"`{op.name}` has {[len(group) for group in groups]} numbers in its brackets", help=help)
    sizes = tuple(item if isinstance(item, int) else constants.get(item) for item in groups[1])
    if isinstance(result, TensorView):
        _refuse_extents(op, sizes, result.shape)
    elif isinstance(result, TileMemRef) and len(sizes) == 2:
        _refuse_extents(op, sizes, (result.rows, result.cols))


def _global(op: Op, pointer: Pointer, sizes: tuple[Expr, ...], strides: tuple[Expr, ...]) -> Pointer | View:
    """Return global memory from a pointer on as the type of a result sees it."""
    return pointer if isinstance(op.results[0].type, PointerMemRef) else View(pointer, sizes, strides)


@declare(
    "memref.reinterpret_cast",
    free("ri*", "r", "to offset sizes strides", Typing.RESULT),
    rule=_has_its_sizes,
    is_by_bytes=True,
    example=f"(%x: {_FLAT} = random:8x64, %n: index = 64, %out: t4x64xf32)"
    f"; %w = {{op}} %x to offset: [%n], sizes: [4, 64], strides: [%n, 1] : {_FLAT} to {_PART.format(space=_GM)}"
    "; pto.tload ins(%w) outs(%out)",
    means="out = x.reshape(8, 64)[1:5]",
)
def _reinterpret(m: Machine, op: Op, value: Lowered) -> Lowered:
    """A buffer from one of its elements on, under other extents and strides."""
    if not begins_its_buffer(op.operands[0].type):
        message = f"`{op.name}` counts from the start of a buffer, and {op.operands[0].type} begins elsewhere"
        raise UnsupportedFeatureError(message, help="use what it is a window of, or `memref.subview`")
    offsets, sizes, strides = (_numbers(m, items) for items in bracketed(op))
    if isinstance(value, Tile):
        return _strided(m, op, value, offsets[0], strides)
    base = value.pointer if isinstance(value, View) else value
    assert isinstance(base, Pointer)
    return _global(op, moved(m, base, offsets[0]), sizes, strides)


def _strided(m: Machine, op: Op, tile: Tile, offset: Expr, strides: Sequence[Expr]) -> Tile:
    """Return elements of a tile's buffer in the order that strides say."""
    type_, steps = _tile_made(op), [known(stride) for stride in strides]
    if len(steps) != 2 or steps[0] is None or steps[1] is None or min(steps[0], steps[1]) < 0:
        raise UnsupportedFeatureError("a buffer of a local memory has two strides that are known", help="write them")
    tile = tile if tile.slot is None else placed(m, tile)
    reach = (type_.rows - 1) * steps[0] + (type_.cols - 1) * steps[1]
    most = tile.type.rows * tile.type.cols - 1 - reach
    if most < 0:
        raise OutOfBoundsError(f"elements 0 to {reach} leave a buffer of {tile.type.rows * tile.type.cols}")
    check_range(m, offset, most, f"an offset does not lie within 0 to {most}")
    place = moved(m, tile.place, offset)
    return Tile(type_, _whole(m, type_), pointer=place, strides=(steps[0], steps[1]))


@declare(
    "memref.subview",
    free("ri*", "r", "to", Typing.RESULT),
    rule=_has_its_sizes,
    is_by_bytes=True,
    example=f"(%x: w8x64xf32, %n: index = 2, %out: t4x64xf32); %m = memref.alloc() : {_TILE}"
    f"; pto.tload ins(%x) outs(%m); %w = {{op}} %m[%n, 0] [4, 64] [1, 1] : {_TILE} to {_PART.format(space=_VEC)}"
    "; pto.tmov ins(%w) outs(%out)",
    means="out = x[2:6]",
)
def _subview(m: Machine, op: Op, value: Lowered) -> Lowered:
    """A window of a buffer, in the same bytes."""
    offsets, sizes, steps = (_numbers(m, items) for items in bracketed(op))
    if isinstance(value, Tile):
        if len(offsets) != 2 or any(known(step) != 1 for step in steps):
            raise UnsupportedFeatureError("a window of a tile has rows and columns, side by side", help="copy its rows")
        return part(m, value, _tile_made(op), (offsets[0], offsets[1]), None)
    pointer, strides = (value.pointer, value.strides) if isinstance(value, View) else (value, (m.b.index(1),))
    assert isinstance(pointer, Pointer)
    if not len(offsets) == len(sizes) == len(strides):
        raise UnsupportedFeatureError(f"`{op.name}` keeps every axis", help="drop none of them")
    start = m.b.index(0)
    for offset, stride in zip(offsets, strides, strict=True):
        start = m.b.add(start, product(m, offset, stride))
    pairs = zip(strides, steps, strict=True)
    return _global(op, moved(m, pointer, start), sizes, tuple(product(m, stride, step) for stride, step in pairs))
