"""Open cube: loads, products and stores of matrices of which only the running program knows the extents.

They are done a fractal at a time, 16 rows by as many columns as one of their blocks has; what lies behind the last row
or column is read, never counted and never changed.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr
from tilewright.dtypes import INT32
from tilewright.ops.builder import element_of, tile_type
from tilewright.pto.machine.copying import Axis, Copy, run
from tilewright.pto.machine.elements import cast, filled, over_columns, over_rows, where
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.matrices import BLOCK, FRACTAL, Matrix, lanes
from tilewright.pto.machine.tiles import bytes_view, moved
from tilewright.pto.machine.values import Pointer
from tilewright.records import record


def blocks_of(m: Machine, extent: Expr, unit: int) -> Expr:
    """Return how many blocks of so many rows or columns an extent needs."""
    return m.b.scalar("floordiv", m.b.add(extent, unit - 1), m.b.index(unit))


def whole(m: Machine, extent: Expr, unit: int) -> Expr:
    """Return the next multiple of a unit."""
    return m.b.mul(blocks_of(m, extent, unit), unit)


def part(m: Machine, start: Pointer, row: Expr, column: Expr, size: tuple[int, int], pitch: Expr) -> Matrix:
    """Return rows and columns of a matrix from a row and the first column of a block on."""
    width = Matrix(start, 1, 1, pitch).width
    first = m.b.add(m.b.scalar("mul", column, pitch), m.b.mul(row, width))
    return Matrix(moved(m, start, first), *size, pitch)


def load_open(m: Machine, source: Pointer, target: Pointer, major: Expr, depth: Expr, *, is_turned: bool) -> None:
    """Emit the load of a factor, whole or turned."""
    if not is_turned:
        fractals = m.b.scalar("mul", blocks_of(m, major, FRACTAL), blocks_of(m, depth, lanes(source.element)))
        step = m.b.index(FRACTAL * BLOCK)
        run(m, Copy(source, target, step, (Axis(fractals, step, step),)))
        return
    unit = max(FRACTAL, lanes(source.element))
    rows, cols = whole(m, major, unit), whole(m, depth, unit)
    with m.b.loop(0, rows, unit, hint="row") as row, m.b.loop(0, cols, unit, hint="column") as column:
        held = part(m, source, column, row, (unit, unit), cols)
        part(m, target, row, column, (unit, unit), rows).write(m, held.read(m, is_turned=True))


# products


@record
class OpenProduct:
    """A product of matrices: how factors and results are taken, and what it begins with.

    It begins with what the accumulator holds, or with a row for each of its rows, or with nothing.
    """

    factor: Callable[[Pointer, Expr], Expr]
    finished: Callable[[Expr], Expr] | None
    adds: bool
    bias: Pointer | None


def multiply_open(
    m: Machine, how: OpenProduct, a: Pointer, b: Pointer, c: Pointer, sizes: tuple[Expr, Expr, Expr]
) -> None:
    """Emit the product of what lies at two pointers; sizes are rows, columns and depth."""
    rows, cols, depth = sizes
    pitch, step = whole(m, rows, FRACTAL), lanes(a.element)
    with m.b.loop(0, rows, FRACTAL, hint="row") as row, m.b.loop(0, cols, FRACTAL, hint="column") as column:
        out = part(m, c, row, column, (FRACTAL, FRACTAL), pitch)
        left = m.b.scalar("sub", rows, row), m.b.scalar("sub", cols, column)

        def change(make: Callable[[Expr], Expr], out: Matrix = out, left: tuple[Expr, Expr] = left) -> None:
            held = out.read(m)
            out.write(m, inside(m, make(held), held, left))

        change(lambda held: _begun(m, how, held, column))
        with m.b.loop(0, depth, step, hint="depth") as at:
            rest = m.b.scalar("sub", depth, at)
            size = FRACTAL, step
            lhs = how.factor(a, part(m, a, row, at, size, pitch).read(m))
            rhs = how.factor(b, part(m, b, column, at, size, whole(m, cols, FRACTAL)).read(m, is_turned=True))
            lhs, rhs = _deep(m, lhs, over_columns, rest), _deep(m, rhs, over_rows, rest)
            change(lambda held: m.b.tile("add", held, cast(m, m.b.tile("matmul", lhs, rhs), element_of(held))))
        if how.finished is not None:
            change(how.finished)


def _begun(m: Machine, how: OpenProduct, held: Expr, column: Expr) -> Expr:
    """Return what a product is added to."""
    if how.adds:
        return held
    nothing = filled(m, tile_type(held), 0)
    if how.bias is None:
        return nothing
    row = m.b.load(bytes_view(m, moved(m, how.bias, column), (1, FRACTAL), (FRACTAL, 1)), (1, FRACTAL))
    return m.b.tile("col_expand_add", nothing, row)


def _deep(m: Machine, factor: Expr, places: Callable[[Machine, tuple[int, ...]], Expr], rest: Expr) -> Expr:
    """Return a factor with zeros for what lies behind its depth, whatever is there."""
    type_ = tile_type(factor)
    return where(m, places(m, type_.shape), CmpType.LT, m.b.cast(rest, INT32), factor, filled(m, type_, 0))


def inside(m: Machine, value: Expr, other: Expr, left: tuple[Expr, Expr]) -> Expr:
    """Return elements of one tile in so many rows and columns, of another behind them."""
    shape = tile_type(value).shape
    rows, cols = (m.b.cast(number, INT32) for number in left)
    some = where(m, over_columns(m, shape), CmpType.LT, cols, value, other)
    return where(m, over_rows(m, shape), CmpType.LT, rows, some, other)


# what leaves


def pieces(
    m: Machine,
    source: Pointer,
    pitch: Expr,
    extents: tuple[Expr, Expr],
    emit: Callable[[Machine, Expr, Expr, Expr], None],
) -> None:
    """Emit what becomes of the rows of an accumulator: of 16 columns at a time, and of the last ones by themselves.

    What is emitted is given a row, a column, and the elements from there on.
    """
    rows, cols = extents
    blocks = m.b.mul(m.b.scalar("floordiv", cols, m.b.index(FRACTAL)), FRACTAL)
    with m.b.loop(0, rows, hint="row") as row:
        with m.b.loop(0, blocks, FRACTAL, hint="column") as column:
            emit(m, row, column, part(m, source, row, column, (1, FRACTAL), pitch).read(m))
        with m.b.loop(blocks, cols, hint="column") as column:
            held = part(m, source, row, blocks, (1, FRACTAL), pitch).read(m)
            emit(m, row, column, m.b.tile("slice", held, (1, 1), (0, m.b.scalar("sub", column, blocks))))
