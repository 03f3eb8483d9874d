"""Views and tiles: `make_tensor_view`, `partition_view`, `alloc_tile` and what reinterprets them.

Their types say what is known about their sizes: a Python number is in the type, a value of the module is `?`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from tilewright.errors import AttributeValueError, OperandError
from tilewright.frontend.names import nearest
from tilewright.pto.module import Attribute, Clause, Enumerated, Value
from tilewright.pto.text.typetext import CHOICES
from tilewright.pto.traced.arguments import Argument, Arguments, listed, scalar_type
from tilewright.pto.traced.ops import emit, handles
from tilewright.pto.traced.places import is_resized
from tilewright.pto.traced.scalars import as_index, as_integer, static_int
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe
from tilewright.pto.types import I64, INDEX, SPACES, TILES_LIVE, Ptr, Space, TensorView, TileBuf

T = TypeVar("T", Ptr, TensorView, TileBuf)


@handles("make_tensor_view")
def _make_tensor_view(t: Tracer, given: Arguments) -> Value:
    bound = given.bind(t, "ptr", "shape", "strides", optional=("layout",))
    pointer, pointer_type = _typed(t, bound["ptr"], Ptr, "a pointer to gm")
    shape, strides = listed(bound["shape"]), listed(bound["strides"])
    _check_rank(t, bound["strides"], strides, len(shape))
    type_ = TensorView(tuple(_extent(each) for each in shape), pointer_type.element)
    clauses = _index_clause(t, "shape", shape), _index_clause(t, "strides", strides)
    attributes: dict[str, Attribute] = {}
    if "layout" in bound:
        attributes["layout"] = Enumerated("layout", str(bound["layout"].value))
    return t.writer.value("pto.make_tensor_view", (pointer,), type_, t.span(given.node), attributes, clauses)


@handles("partition_view")
def _partition_view(t: Tracer, given: Arguments) -> Value:
    bound = given.bind(t, "view", "offsets", "sizes")
    view, view_type = _typed(t, bound["view"], TensorView, "a tensor view")
    offsets, sizes = listed(bound["offsets"]), listed(bound["sizes"])
    for name, parts in (("offsets", offsets), ("sizes", sizes)):
        _check_rank(t, bound[name], parts, len(view_type.shape))
    type_ = TensorView(tuple(_extent(each) for each in sizes), view_type.element, partition=True)
    clauses = _index_clause(t, "offsets", offsets), _index_clause(t, "sizes", sizes)
    return t.writer.value("pto.partition_view", (view,), type_, t.span(given.node), clauses=clauses)


@handles("tile.load", "tile.store")
def _move(t: Tracer, given: Arguments) -> None:
    """Emit a copy between a tile and a partition, which `offsets` and `sizes` make of a whole view."""
    word = given.word
    place = 0 if word == "load" else 1
    window = {name: given.kwargs.pop(name) for name in ("offsets", "sizes") if name in given.kwargs}
    if window and len(given.args) == 2:
        view, tile = given.args[place], given.args[1 - place]
        partition = Arguments(given.name, given.node, "", [view], _window(t, view, tile, window))
        given.args[place] = Argument(_partition_view(t, partition), view.node)
    emit(t, f"pto.t{word}", given)


def _window(t: Tracer, view: Argument, tile: Argument, window: dict[str, Argument]) -> dict[str, Argument]:
    """Return the offsets and sizes of a partition: from the start, and as large as the tile's valid region."""
    rank = len(_typed(t, view, TensorView, "a tensor view")[1].shape)
    _, type_ = _typed(t, tile, TileBuf, "a tile")
    valid = (type_.valid_rows, type_.valid_cols)
    if "sizes" not in window and (rank != 2 or None in valid):
        help = "sizes=[rows, cols]"
        raise t.error(OperandError, tile.node, "the sizes of this partition do not follow from the tile", help=help)
    return {"offsets": Argument((0,) * rank, view.node), "sizes": Argument(valid, tile.node), **window}


def _check_rank(t: Tracer, argument: Argument, parts: Sequence[Argument], rank: int) -> None:
    if len(parts) != rank:
        message = f"{rank} numbers are needed here, one for each axis, got {len(parts)}"
        raise t.error(OperandError, argument.node, message, help="views have as many strides and offsets as axes")


def _index_clause(t: Tracer, word: str, parts: Sequence[Argument]) -> Clause:
    return Clause(word, tuple(as_index(t, part.value, part.node) for part in parts))


def _extent(argument: Argument) -> int | None:
    value = argument.value
    return value if isinstance(value, int) else None


_PLACES = ("memory_space", "loc")
_LAYOUTS = ("blayout", "slayout", "fractal", "pad", "compact")
_VALID = ("valid_shape", "valid_row", "valid_col")


@handles("tile_type")
def _tile_type(t: Tracer, given: Arguments) -> TileBuf:
    """Return the type of a tile; `valid_shape` has None for what only the running program knows."""
    bound = given.bind(t, "shape", "dtype", optional=(*_PLACES, "valid_shape", *_LAYOUTS))
    type_ = _tile(t, bound)
    if "valid_shape" not in bound:
        return type_
    parts = listed(bound["valid_shape"])
    _check_rank(t, bound["valid_shape"], parts, len(listed(bound["shape"])))
    pairs = zip(parts, (type_.rows, type_.cols)[-len(parts) :], strict=True)
    extents = [None if part.value is None else _within(t, part, full) for part, full in pairs]
    rows, cols = (1, *extents)[-2:]
    return replace(type_, valid_rows=rows, valid_cols=cols)


def _tile(t: Tracer, bound: dict[str, Argument]) -> TileBuf:
    """Return a tile type as keywords describe it, all of it valid."""
    space = _space(t, bound.get("memory_space") or bound.get("loc"))
    rows, cols = _shape(t, bound["shape"])
    whole = TileBuf(space, scalar_type(t, bound["dtype"]), rows, cols, rows, cols)
    return _laid_out(t, _boxed(whole, t.program.target), bound)


@handles("alloc_tile")
def _alloc_tile(t: Tracer, given: Arguments) -> Value:
    bound = given.bind(t, "shape", "dtype", optional=(*_PLACES, *_VALID, "addr", *_LAYOUTS))
    type_ = _tile(t, bound)
    clauses: list[Clause] = []
    if "addr" in bound:
        clauses.append(Clause("addr", (as_integer(t, bound["addr"].value, I64, bound["addr"].node),)))
    type_, valid = _validity(t, type_, bound, is_resized(t, given.node))
    return t.writer.value("pto.alloc_tile", (), type_, t.span(given.node), clauses=(*clauses, *valid))


def _validity(t: Tracer, type_: TileBuf, bound: dict[str, Argument], is_open: bool) -> tuple[TileBuf, list[Clause]]:
    """Return a tile type with its valid region, and the operands that say it where it is not known, or changes."""
    if "valid_shape" in bound:
        _check_rank(t, bound["valid_shape"], listed(bound["valid_shape"]), len(listed(bound["shape"])))
    rows, cols = (None, None, *(listed(bound["valid_shape"]) if "valid_shape" in bound else ()))[-2:]
    extents: list[int | None] = []
    clauses: list[Clause] = []
    for word, part, full in (("valid_row", rows, type_.rows), ("valid_col", cols, type_.cols)):
        argument = bound.get(word) or part
        value, node = (full, bound["shape"].node) if argument is None else (argument.value, argument.node)
        is_known = isinstance(value, int) and not isinstance(value, bool)
        extent = _within(t, Argument(value, node), full) if is_known else None
        extents.append(None if is_open else extent)
        if is_open or extent is None:
            clauses.append(Clause(word, (as_index(t, value, node),)))
    return replace(type_, valid_rows=extents[0], valid_cols=extents[1]), clauses


def _within(t: Tracer, argument: Argument, full: int) -> int:
    number = static_int(t, argument.value, argument.node, "a valid size")
    if not 0 <= number <= full:
        message = f"the valid region is at most the tile's {full}, got {number}"
        raise t.error(OperandError, argument.node, message, help="make the tile larger, or this smaller")
    return number


def _boxed(type_: TileBuf, target: str) -> TileBuf:
    """Return a tile type in the layout that its memory wants: boxes, for what matrix products read and write."""
    match type_.space:
        case Space.MAT:
            return replace(type_, blayout="col_major", slayout="row_major")
        case Space.LEFT:
            return replace(type_, blayout="col_major" if target == "a5" else "row_major", slayout="row_major")
        case Space.RIGHT:
            return replace(type_, slayout="col_major")
        case Space.ACC:
            return replace(type_, blayout="col_major", slayout="row_major", fractal=1024)
        case _:
            return type_


def _laid_out(t: Tracer, type_: TileBuf, bound: dict[str, Argument]) -> TileBuf:
    """Return a tile type with the layout that keywords ask for."""
    for word in _LAYOUTS:
        if word in bound:
            value = _choice(t, word, bound[word])
            type_ = replace(type_, **{word: value if word.endswith("layout") else int(value)})  # pyright: ignore[reportArgumentType]
    return type_


def _choice(t: Tracer, word: str, argument: Argument) -> str:
    said = str(argument.value)
    plain = {"RowMajor": "row_major", "ColMajor": "col_major", "NoneBox": "none_box"}.get(said, said)
    numbered = {"null": "0", "zero": "1", "max": "2", "min": "3"}.get(plain, plain) if word == "pad" else plain
    if numbered not in CHOICES[word]:
        message = f"`{word}` cannot be {argument.value!r}"
        help = nearest(plain, list(CHOICES[word])) or f"it is {', '.join(CHOICES[word])}"
        raise t.error(AttributeValueError, argument.node, message, help=help)
    return numbered


def _space(t: Tracer, argument: Argument | None) -> Space:
    if argument is None:
        return Space.VEC
    space = SPACES.get(str(argument.value).lower())
    if space is None or space is Space.GM:
        message = f"no tile lives in {argument.value!r}"
        raise t.error(AttributeValueError, argument.node, message, help=TILES_LIVE)
    return space


def _shape(t: Tracer, argument: Argument) -> tuple[int, int]:
    sizes = [static_int(t, part.value, part.node, "the size of a tile") for part in listed(argument)]
    if len(sizes) not in (1, 2) or min(sizes, default=0) <= 0:
        message = f"a tile has one or two sizes above zero, got {describe(argument.value)}"
        raise t.error(OperandError, argument.node, message, help="shape=[rows, cols], or shape=[cols] for one row")
    return (sizes[0], sizes[1]) if len(sizes) == 2 else (1, sizes[0])


@handles("tile.reshape")
def _reshape(t: Tracer, given: Arguments) -> Value:
    bound = given.bind(t, "src", "shape", optional=("dtype", *_LAYOUTS))
    tile, tile_type = _typed(t, bound["src"], TileBuf, "a tile")
    rows, cols = _shape(t, bound["shape"])
    element = scalar_type(t, bound["dtype"]) if "dtype" in bound else tile_type.element
    type_ = replace(tile_type, rows=rows, cols=cols, valid_rows=rows, valid_cols=cols, element=element)
    type_ = _laid_out(t, type_, bound)
    if type_.nbytes != tile_type.nbytes:
        message = f"the tile has {tile_type.nbytes} bytes, and this shape {type_.nbytes}"
        raise t.error(OperandError, bound["shape"].node, message, help="a reshape keeps every byte")
    return t.writer.value("pto.treshape", (tile,), type_, t.span(given.node))


@handles("subview", "subset")
def _subview(t: Tracer, given: Arguments) -> Value:
    bound = given.bind(t, "src", "offsets", "sizes", optional=("valid",))
    tile, tile_type = _typed(t, bound["src"], TileBuf, "a tile")
    rows, cols = _shape(t, bound["sizes"])
    offsets = listed(bound["offsets"])
    _check_rank(t, bound["offsets"], offsets, 2)
    type_ = replace(tile_type, rows=rows, cols=cols, valid_rows=rows, valid_cols=cols)
    clauses = [_index_clause(t, "offsets", offsets)]
    if "valid" in bound:
        valid = listed(bound["valid"])
        _check_rank(t, bound["valid"], valid, 2)
        type_ = replace(type_, valid_rows=_extent(valid[0]), valid_cols=_extent(valid[1]))
        clauses.append(_index_clause(t, "valid", valid))
    return t.writer.value(f"pto.{given.word}", (tile,), type_, t.span(given.node), {"sizes": (rows, cols)}, clauses)


@handles("castptr")
def _castptr(t: Tracer, given: Arguments) -> Value:
    bound = given.bind(t, "value", "type")
    wanted = bound["type"].value
    if not isinstance(wanted, Ptr) and wanted not in (I64, INDEX):
        help = 'pto.castptr(address, pto.ptr(pto.f32, "ub"))'
        message = f"a pointer type is needed here, got {describe(wanted)}"
        raise t.error(OperandError, bound["type"].node, message, help=help)
    value, node = bound["value"].value, bound["value"].node
    is_pointer = isinstance(value, Value) and isinstance(value.type, Ptr)
    operand = value if is_pointer else as_integer(t, value, I64, node)
    return t.writer.value("pto.castptr", (operand,), wanted, t.span(given.node))


def _typed(t: Tracer, argument: Argument, kind: type[T], what: str) -> tuple[Value, T]:
    """Return an argument that is a value of some kind of type, with its type; OperandError for another."""
    value = argument.value
    if not isinstance(value, Value) or not isinstance(value.type, kind):
        raise t.error(OperandError, argument.node, f"{what} is needed here, got {describe(value)}", help=f"pass {what}")
    return value, value.type
