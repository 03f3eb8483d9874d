"""Laws of tiles: what laws ask of a tile, or of two that meet; whatever is refused says what to write instead.

What is not known, a `?`, is never refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.pto.errors import PtoOperandError, PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.module import Op, Value
from tilewright.pto.types import Scalar, Space, TileBuf, show

ROWS, COLUMNS, NZ = ("row_major", "none_box"), ("col_major", "none_box"), ("col_major", "row_major")
"""Rows, columns, and boxes of rows in columns, as blayout and slayout."""


def short(op: Op) -> str:
    """Return an op's name as messages have it."""
    return op.name.removeprefix("pto.")


def plain(element: Scalar) -> str:
    """Return an element type's name without its sign."""
    return element.name.removeprefix("u").removeprefix("s") if element.is_integer else element.name


def tiles_of(values: Iterable[Value]) -> list[Value]:
    """Return those of some values that are tiles."""
    return [value for value in values if isinstance(value.type, TileBuf)]


def lies_in(op: Op, value: Value, *spaces: Space) -> None:
    """Refuse a tile in another memory."""
    space = value.of(TileBuf).space
    if space not in spaces:
        places = " or ".join(each.loc for each in spaces)
        message = f"{short(op)}: `%{value.name}` must lie in {places}, got {space.loc}"
        raise PtoOperandError(message, help=f"move it to {spaces[0].loc} with `pto.tmov`")


def laid_out_as(op: Op, value: Value, *layouts: tuple[str, str]) -> None:
    """Refuse a tile of another layout; of the left factor only the layout inside boxes is its own."""
    tile = value.of(TileBuf)
    found = tile.blayout, tile.slayout
    is_left = tile.space is Space.LEFT and any(tile.slayout == inner for _, inner in layouts)
    if found not in layouts and not is_left:
        wanted = " or ".join(f"blayout={outer}, slayout={inner}" for outer, inner in layouts)
        message = f"{short(op)}: `%{value.name}` must have {wanted}, got blayout={found[0]}, slayout={found[1]}"
        raise PtoTypeMismatchError(message, help=f"write {wanted.partition(' or ')[0]} in its type")


def by_rows(op: Op, *values: Value) -> None:
    """Refuse tiles whose elements do not lie row after row."""
    for value in values:
        if value.of(TileBuf).blayout != "row_major":
            message = f"{short(op)}: `%{value.name}` must be row-major, got blayout={value.of(TileBuf).blayout}"
            raise PtoTypeMismatchError(message, help="write blayout=row_major in its type")


def holds(op: Op, value: Value, *elements: str) -> None:
    """Refuse a tile of other elements; integers of a width count whatever their sign."""
    element = value.of(TileBuf).element
    if plain(element) not in elements:
        message = f"{short(op)}: `%{value.name}` must hold {' or '.join(elements)}, got {element}"
        raise PtoTypeMismatchError(message, help=f"make it {elements[-1]}, or convert it with `pto.tcvt`")


def equal_elements(op: Op, one: Value, other: Value) -> None:
    """Refuse two tiles of different elements."""
    a, b = one.of(TileBuf).element, other.of(TileBuf).element
    if a != b:
        message = f"{short(op)}: `%{one.name}` and `%{other.name}` must hold equal elements, got {a} and {b}"
        raise PtoTypeMismatchError(message, help=f"make `%{one.name}` a tile of {b}")


def number_as_elements(op: Op, number: Value, tile: Value) -> None:
    """Refuse a number of another type than a tile's elements."""
    wanted = tile.of(TileBuf).element
    if isinstance(number.type, Scalar) and number.type != wanted:
        message = f"{short(op)}: `%{number.name}` must be {wanted}, as `%{tile.name}` holds, got {number.type}"
        raise PtoTypeMismatchError(message, help=f"make it {wanted}")


def valid_in(op: Op, value: Value, rows: int | None = None, cols: int | None = None) -> None:
    """Refuse a tile of which another number of rows or columns is valid."""
    tile = value.of(TileBuf)
    for noun, key, wanted, found in (
        ("row", "v_row", rows, tile.valid_rows),
        ("column", "v_col", cols, tile.valid_cols),
    ):
        if None not in (wanted, found) and wanted != found:
            nouns = noun if wanted == 1 else f"{noun}s"
            message = f"{short(op)}: `%{value.name}` must have {wanted} valid {nouns}, got {found}"
            raise PtoValidShapeError(message, help=f"write {key}={wanted} in its type")


def valid_alike(op: Op, one: Value, other: Value) -> None:
    """Refuse two tiles of which different parts are valid."""
    a, b = one.of(TileBuf), other.of(TileBuf)
    for found, wanted in ((a.valid_rows, b.valid_rows), (a.valid_cols, b.valid_cols)):
        if found is not None and wanted is not None and found != wanted:
            shapes = [f"{show(tile.valid_rows)}x{show(tile.valid_cols)}" for tile in (a, b)]
            message = f"{short(op)}: `%{one.name}` and `%{other.name}` must be valid alike, got {' and '.join(shapes)}"
            raise PtoValidShapeError(message, help="give both the same valid rows and columns")


def shaped_alike(op: Op, one: Value, other: Value) -> None:
    """Refuse two tiles of different shapes."""
    a, b = one.of(TileBuf), other.of(TileBuf)
    if (a.rows, a.cols) != (b.rows, b.cols):
        shapes = f"{a.rows}x{a.cols} and {b.rows}x{b.cols}"
        message = f"{short(op)}: `%{one.name}` and `%{other.name}` must have equal shapes, got {shapes}"
        raise PtoTypeMismatchError(message, help=f"make `%{one.name}` {b.rows}x{b.cols}")


def apart(op: Op, *values: Value) -> None:
    """Refuse a tile that stands in two places."""
    for place, value in enumerate(values):
        if value in values[:place]:
            message = f"{short(op)}: `%{value.name}` is read and written"
            raise PtoOperandError(message, help="write into another tile")
