"""Laws of folds and meetings: rows and columns that fold to one element, and that one element meets."""

from __future__ import annotations

from tilewright.pto.elements import A3, A5, CALLED
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.module import Constants, Op, Value
from tilewright.pto.tile_laws import (
    ROWS,
    by_rows,
    equal_elements,
    holds,
    laid_out_as,
    lies_in,
    shaped_alike,
    short,
    valid_alike,
    valid_in,
)
from tilewright.pto.types import Space, TileBuf

_BYTES = 32
"""The bytes of a block."""


def reduced(op: Op, constants: Constants) -> None:
    """Refuse a fold of other layouts, or whose result does not have one element for each row, or for each column."""
    source, target = op.ins[0].of(TileBuf), op.outs[0].of(TileBuf)
    is_by_rows, is_place = op.name.startswith("pto.trow"), "arg" in op.name
    for value in (op.ins[0], op.outs[0]):
        lies_in(op, value, Space.VEC)
    laid_out_as(op, op.ins[0], ROWS)
    if is_by_rows:
        valid_in(op, op.outs[0], rows=source.valid_rows, cols=1)
        _refuse_column(op, target)
    else:
        laid_out_as(op, op.outs[0], ROWS)
        valid_in(op, op.outs[0], rows=1 if is_place else None, cols=source.valid_cols)
    takes_nothing = not (is_by_rows or is_place) and (constants.arch == A3 or op.name == "pto.tcolprod")
    if 0 in (source.valid_rows, source.valid_cols) and not takes_nothing:
        raise PtoValidShapeError(f"{short(op)}: there is nothing to reduce", help="extents are positive")
    if is_place:
        holds(op, op.outs[0], "i32")
    for scratch in op.ins[1:2]:
        if is_by_rows or is_place:
            equal_elements(op, scratch, op.ins[0])
            valid_alike(op, scratch, op.ins[0])
        if is_place and not is_by_rows:
            lies_in(op, scratch, Space.VEC)
            by_rows(op, scratch)
    if op.name == "pto.tcolsum" and (len(op.ins) > 1) != ("isBinary" in op.attributes):
        has, lacks = ("a scratch tile", "`isBinary`") if len(op.ins) > 1 else ("`isBinary`", "scratch tile")
        message = f"tcolsum has {has} and no {lacks}"
        raise PtoAttributeError(message, help="give both, or neither")


def _refuse_column(op: Op, target: TileBuf) -> None:
    """Refuse where rows fold to, unless it is a row-major tile or one column."""
    if target.slayout != "none_box" or (target.blayout == "col_major" and target.cols != 1):
        message = f"{short(op)}: `%{op.outs[0].name}` must be row-major, or one column, without boxes"
        raise PtoTypeMismatchError(message, help=f"write {target.rows}x1 and blayout=col_major, or blayout=row_major")


def met_by_rows(op: Op, constants: Constants) -> None:
    """Refuse rows that meet anything but an element for each, in the layouts that machines read it in."""
    first, second, *scratch = op.ins
    arch, word = constants.arch, op.name.removeprefix("pto.trowexpand")
    if word not in ("add", *_EITHER_WAY):
        return
    whole, each = (second, first) if is_turned(op) else (first, second)
    valid_alike(op, whole, op.outs[0])
    by_rows(op, whole)
    _refuse_element_of_rows(op, each)
    if scratch and arch == A5:
        raise PtoOperandError(f"A5 {short(op)} takes no scratch tile", help="leave it out")
    if scratch and each.of(TileBuf).blayout == "row_major":
        message = f"{CALLED[A3]} {short(op)}: with a scratch tile, `%{each.name}` must be a column"
        raise PtoTypeMismatchError(message, help="write blayout=col_major in its type, or leave the scratch tile out")


_EITHER_WAY = ("max", "min", "expdif")
"""Meetings of rows that may name the element of each row before the rows."""


def is_turned(op: Op) -> bool:
    """Return whether the first tile of a meeting of rows has the element of each row, and the second the rows."""
    if op.name.removeprefix("pto.trowexpand") not in _EITHER_WAY:
        return False
    first, second, target = (value.of(TileBuf) for value in (*op.ins[:2], op.outs[0]))
    return _is_whole(second, target) and not _may_be_whole(first, target)


def _is_whole(tile: TileBuf, target: TileBuf) -> bool:
    return (tile.valid_rows, tile.valid_cols) == (target.valid_rows, target.valid_cols) and _may_be_whole(tile, target)


def _may_be_whole(tile: TileBuf, target: TileBuf) -> bool:
    """Return whether as much of a tile may be valid as of another; of what only the run knows, shapes tell."""
    sides = (
        (tile.valid_rows, target.valid_rows, tile.rows == target.rows),
        (tile.valid_cols, target.valid_cols, tile.cols == target.cols),
    )
    return tile.blayout == "row_major" and all(like if None in (a, b) else a == b for a, b, like in sides)


def _refuse_element_of_rows(op: Op, value: Value) -> None:
    """Refuse what does not have one element for each row: a column, or a block of 32 bytes in each row."""
    tile = value.of(TileBuf)
    wanted = _BYTES // tile.element.nbytes if tile.blayout == "row_major" else 1
    if tile.valid_cols not in (None, wanted):
        kind = "a block of 32 bytes in each row" if tile.blayout == "row_major" else "a column"
        message = f"{short(op)}: `%{value.name}` must be {kind}, {wanted} valid columns, got {tile.valid_cols}"
        raise PtoValidShapeError(message, help=f"write v_col={wanted} in its type, or blayout=col_major and v_col=1")


def met_by_columns(op: Op, _: Constants) -> None:
    """Refuse columns that meet anything but an element for each."""
    first, second, target = *op.ins[:2], op.outs[0]
    by_rows(op, first, second, target)
    shaped_alike(op, first, target)
    valid_alike(op, first, target)
    valid_in(op, second, cols=target.of(TileBuf).valid_cols)
