"""Laws of operands: the numbers, indices and scratch tiles that ops on tiles are given besides their data."""

from __future__ import annotations

from tilewright.pto.elements import A3
from tilewright.pto.errors import PtoOperandError, PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.laws import alike, bits_apart
from tilewright.pto.module import Constants, Op, word_of
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.tile_laws import (
    ROWS,
    apart,
    by_rows,
    equal_elements,
    holds,
    laid_out_as,
    lies_in,
    number_as_elements,
    plain,
    shaped_alike,
    short,
    tiles_of,
    valid_in,
)
from tilewright.pto.types import F32, Opaque, Scalar, Space, TensorView, TileBuf


def of_elements(op: Op, _: Constants) -> None:
    """Refuse a number of another type than the elements it meets, and tiles outside vec and mat."""
    for value in op.ins:
        number_as_elements(op, value, op.outs[0])
    for value in tiles_of((*op.ins, *op.outs)):
        lies_in(op, value, Space.VEC, Space.MAT)


def shifted(op: Op, constants: Constants) -> None:
    """Refuse a shift by a constant that is negative."""
    count = constants.get(op.ins[1])
    if count is not None and count < 0:
        raise PtoOperandError(f"{short(op)}: a shift by {count}", help="shift the other way, by a positive number")


def sloped(op: Op, _: Constants) -> None:
    """Refuse a slope that is not an f32."""
    if op.ins[1].type != F32:
        message = f"{short(op)}: a slope is f32, `%{op.ins[1].name}` is {op.ins[1].type}"
        raise PtoTypeMismatchError(message, help="extend it with `arith.extf`, or write an f32")


def scaled_sum(op: Op, _: Constants) -> None:
    """Refuse a factor of another type than what it scales, and sums of other elements than that or f32."""
    number_as_elements(op, op.ins[1], op.ins[0])
    come, go = (value.of(TileBuf).element for value in (op.ins[0], op.outs[0]))
    if come != go and (come.name, go.name) != ("f16", "f32"):
        message = f"{short(op)}: sums hold {come}, or f32 where f16 is added, `%{op.outs[0].name}` holds {go}"
        raise PtoTypeMismatchError(message, help=f"make it a tile of {come}")


def remainders(op: Op, constants: Constants) -> None:
    """Refuse a divisor of another type, and a scratch tile of other elements or of fewer columns than the result."""
    tiles = tiles_of(op.ins)
    scratch = tiles[2:] if op.name == "pto.trem" else tiles[1:]
    if op.name != "pto.trem":
        number_as_elements(op, op.ins[1], op.outs[0])
    by_rows(op, *tiles, op.outs[0])
    for value in scratch:
        equal_elements(op, value, op.outs[0])
        have, need = value.of(TileBuf).valid_cols, op.outs[0].of(TileBuf).valid_cols
        if (have is not None and need is not None and have < need) or value.of(TileBuf).valid_rows == 0:
            message = f"{short(op)}: a scratch tile has a valid row of {need} columns, `%{value.name}` has {have}"
            raise PtoValidShapeError(message, help=f"write v_col={need} in its type")


def exclusive(op: Op, constants: Constants) -> None:
    """Refuse tiles that are not valid alike; of a tile and a number, also one that is read and written."""
    (bits_apart if op.name.endswith("s") else alike)(op, constants)


def in_turn(op: Op, constants: Constants) -> None:
    """Refuse a tile that is read and written where A3 is named, and there other scratch tiles than bytes in rows."""
    values = tiles_of((*op.ins, *op.outs))
    if constants.said == A3:
        apart(op, *values)
    if op.name == "pto.tprelu" and constants.arch == A3 and len(op.ins) > 2:
        holds(op, op.ins[2], "i8")
        laid_out_as(op, op.ins[2], ROWS)


_TAKEN = "vector<4xi16>"


def merged(op: Op, _: Constants) -> None:
    """Refuse lists that are not two to four rows of equal elements, and blocks of tiles of other sizes."""
    tiles, target = tiles_of(op.ins), op.outs[0]
    is_list = any(isinstance(value.type, Opaque) for value in op.outs)
    lists = tiles[:-1] if is_list else tiles
    if is_list and not 2 <= len(lists) <= 4:
        message = f"{short(op)} merges two to four lists, got {len(lists)} before the scratch tile"
        raise PtoOperandError(message, help="give a tile for each list, then a scratch tile")
    for value in op.outs[1:]:
        if isinstance(value.type, Opaque) and str(value.type) != _TAKEN:
            message = f"{short(op)}: how much was taken of each list is {_TAKEN}, `%{value.name}` is {value.type}"
            raise PtoTypeMismatchError(message, help=f"make it {_TAKEN}")
    for value in (*tiles, target):
        if value.of(TileBuf).rows != 1:
            message = f"{short(op)}: a list is one row, `%{value.name}` has {value.of(TileBuf).rows}"
            raise PtoTypeMismatchError(message, help="write rows=1, or merge row after row")
        equal_elements(op, value, target)
    if is_list and tiles[-1].of(TileBuf).cols < target.of(TileBuf).cols:
        wide = target.of(TileBuf).cols
        message = (
            f"{short(op)}: a scratch tile is as wide as the result, {wide} columns, got {tiles[-1].of(TileBuf).cols}"
        )
        raise PtoTypeMismatchError(message, help=f"write cols={wide} in its type")
    if not is_list and len(tiles) == 1:
        shaped_alike(op, tiles[0], target)


def sorted_with(op: Op, _: Constants) -> None:
    """Refuse indices of neither one row nor as many as there are to sort."""
    for value in tiles_of(op.ins[1:2]):
        if value.of(TileBuf).valid_rows != 1:
            valid_in(op, value, rows=op.ins[0].of(TileBuf).valid_rows)


def gathered(op: Op, _: Constants) -> None:
    """Refuse comparisons of tiles that are not row-major in vec, and what is gathered as something else."""
    if not any(isinstance(value.type, Scalar) for value in op.ins[1:2]):
        equal_elements(op, op.outs[0], op.ins[0])
        return
    for value in tiles_of((*op.ins, *op.outs)):
        lies_in(op, value, Space.VEC)
        by_rows(op, value)


def scattered(op: Op, _: Constants) -> None:
    """Refuse other elements than the data's, and indices of another width; those of bytes have 16 bits."""
    equal_elements(op, op.outs[0], op.ins[0])
    wanted = max(op.ins[0].of(TileBuf).element.bits, 16)
    holds(op, op.ins[1], f"i{wanted}")


def made_by_rows(op: Op, _: Constants) -> None:
    """Refuse a result that does not lie row after row."""
    by_rows(op, op.outs[0])


def chosen_bytes(op: Op, _: Constants) -> None:
    """Refuse bytes to choose by that are not a column of ui8."""
    tile = op.ins[1].of(TileBuf)
    if tile.element.name != "ui8" or tile.blayout != "col_major" or tile.cols != 1:
        message = f"{short(op)}: `%{op.ins[1].name}` must be a column of ui8, got {brief_text(tile)}"
        raise PtoTypeMismatchError(message, help=f"write {tile.rows}x1xui8 and blayout=col_major in its type")


COMBINED = {"add": ("i32", "f16", "f32"), "max": ("i32", "f32"), "min": ("i32", "f32")}
"""The elements that are combined in global memory, by how they are."""


def of_memory(op: Op, _: Constants) -> None:
    """Refuse a tile of other elements than the view's that it meets."""
    view = next(value for value in (*op.ins, *op.outs) if isinstance(value.type, TensorView))
    tile = op.outs[0] if view in op.ins else op.ins[0]
    come, go = view.of(TensorView).element, tile.of(TileBuf).element
    if come != go:
        message = f"{short(op)}: `%{view.name}` and `%{tile.name}` must hold equal elements, got {come} and {go}"
        raise PtoTypeMismatchError(message, help=f"make `%{tile.name}` a tile of {come}")


def combined(op: Op, constants: Constants) -> None:
    """Refuse elements that are not combined in global memory so."""
    of_memory(op, constants)
    way = word_of(op.attributes.get("atomicType", op.attributes.get("scatterAtomicOp", ""))).lower().rpartition("_")[2]
    element = op.ins[0].of(TileBuf).element
    if way in COMBINED and plain(element) not in COMBINED[way]:
        message = f"{short(op)}: {way} combines {' '.join(COMBINED[way])}, `%{op.ins[0].name}` holds {element}"
        raise PtoTypeMismatchError(message, help="convert it to f32 with `pto.tcvt`")


def quantized(op: Op, constants: Constants) -> None:
    """Refuse tiles that are not row-major on A2/A3."""
    if constants.arch == A3:
        by_rows(op, op.ins[0], op.outs[0])


def printed(op: Op, _: Constants) -> None:
    """Refuse a tile outside vec."""
    for value in tiles_of(op.operands):
        lies_in(op, value, Space.VEC)


def boxed_alike(op: Op, _: Constants) -> None:
    """Refuse a shape with boxes for a tile without, and the other way round."""
    a, b = (value.of(TileBuf) for value in (op.operands[0], op.results[0]))
    if (a.slayout == "none_box") != (b.slayout == "none_box"):
        message = f"{short(op)}: both tiles have boxes or none, got slayout={a.slayout} and slayout={b.slayout}"
        raise PtoTypeMismatchError(message, help="move it with `pto.tmov`")


def bound_here(op: Op, constants: Constants) -> None:
    """Refuse a tile that comes from the caller, who knows what of it is valid."""
    tile = op.operands[0]
    if tile in constants.given:
        message = f"{short(op)}: `%{tile.name}` must be bound in this function, and it is an argument"
        raise PtoOperandError(message, help="allocate the tile here, or say what is valid where it is allocated")


def read_in_vec(op: Op, _: Constants) -> None:
    """Refuse an element of a tile outside vec."""
    lies_in(op, op.ins[0], Space.VEC)
