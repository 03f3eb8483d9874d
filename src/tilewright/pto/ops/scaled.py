"""Scaled products: matrices of small floats, with a power of two for every 32 of them along the inner axis.

The powers are tiles of their exponents, one byte each: as many rows as the left matrix and a column for each 32 of its
columns, a row for each 32 rows of the right matrix and as many columns.
"""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.dtypes import FP32, FP64
from tilewright.ops.builder import known
from tilewright.pto.elements import SMALL_FLOATS
from tilewright.pto.errors import PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.scales import GROUP, by_columns, by_rows, powers_of
from tilewright.pto.machine.tiles import read
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Op, Value
from tilewright.pto.op import Constants, declare
from tilewright.pto.ops.products import ACCUMULATOR, LEFT, Products, with_operands, write_product
from tilewright.pto.product_laws import EXPONENTS
from tilewright.pto.text.form import tile
from tilewright.pto.types import TileBuf


def _factors(op: Op) -> tuple[Value, ...]:
    """Return the left matrix, its exponents, the right one and its exponents."""
    return op.ins[1:5] if op.name.endswith(".acc") else op.ins[:4]


def _fits(op: Op, _: Constants) -> None:
    """Refuse other elements, and exponents that are not one for each 32."""
    a, left, b, right = (value.of(TileBuf) for value in _factors(op))
    for value in (a, b):
        if value.element.name not in SMALL_FLOATS:
            raise PtoTypeMismatchError(f"`{op.name}` multiplies {', '.join(SMALL_FLOATS)}, got {value.element}")
    _check_scale(op, left, (a.rows, -(-a.cols // GROUP)))
    _check_scale(op, right, (-(-b.rows // GROUP), b.cols))
    if a.cols != b.rows or (a.rows, b.cols) != (op.outs[0].of(TileBuf).rows, op.outs[0].of(TileBuf).cols):
        shapes = f"{a.rows}x{a.cols} and {b.rows}x{b.cols}"
        raise PtoValidShapeError(f"`{op.name}` multiplies {shapes} into {op.outs[0].of(TileBuf).rows} rows")


def _check_scale(op: Op, scale: TileBuf, wanted: tuple[int, int]) -> None:
    if scale.element.name not in EXPONENTS:
        return  # older text has other tiles here, which only a launch has to know
    if (scale.rows, scale.cols) != wanted:
        message = f"`{op.name}` needs {wanted[0]}x{wanted[1]} exponents, got {scale.rows}x{scale.cols}"
        raise PtoValidShapeError(message, help=f"one for each {GROUP} elements along the inner axis")


_SCALES = "!pto.tile_buf<{}xf8E8M0FNU, slayout=row_major, fractal=32>"


_PRODUCT = "(a * np.repeat(i[:len(a)], 32, 1)) @ (b * np.repeat(j, 32, 0))"


def _operands(rows: int) -> dict[str, str]:
    sums, left = ACCUMULATOR.format("16x32xf32", f"{rows}x32"), LEFT.format("16x64xf8E4M3FN", f"{rows}x64")
    return {
        "c": sums, "a": left, "b": "right64x32xf8E4M3FN",
        "i": f"{_SCALES.format('scaling, 16x2')} = 2", "j": f"{_SCALES.format('scaling, 2x32')} = 1",
        "m": f"{_SCALES.format('mat, 16x2')} = 2", "x": "bias1x32xf32", "out": sums,
    }  # fmt: skip


_SCALED = Products(_fits, _operands)


@_SCALED.declared(".mx", "%a, %i, %b, %j", _PRODUCT)
def _multiply(m: Machine, op: Op, target: Tile, a: Tile, left: Tile, b: Tile, right: Tile) -> None:
    """The product of two matrices with scales."""
    write_product(m, target, a, b, m.b.tile("matmul", *_numbers(m, op, a, left, b, right)))


@_SCALED.declared(".mx.acc", "%c, %a, %i, %b, %j", f"c + {_PRODUCT}")
def _accumulate(m: Machine, op: Op, target: Tile, sums: Tile, a: Tile, left: Tile, b: Tile, right: Tile) -> None:
    """The product of two matrices with scales, added to a third."""
    acc = read(m, sums, (a.valid[0], b.valid[1]), (a.type.rows, b.type.cols))
    factors = _numbers(m, op, a, left, b, right)
    write_product(m, target, a, b, m.b.tile("matmul_acc", cast(m, acc, FP64), *factors))


@_SCALED.declared(".mx.bias", "%a, %i, %b, %j, %x", f"{_PRODUCT} + x")
def _biased(m: Machine, op: Op, target: Tile, a: Tile, left: Tile, b: Tile, right: Tile, bias: Tile) -> None:
    """The product of two matrices with scales, and a row added to each of its rows."""
    row = read(m, bias, (m.b.index(1), b.valid[1]), (1, b.type.cols))
    factors = _numbers(m, op, a, left, b, right)
    write_product(m, target, a, b, m.b.tile("matmul_bias", *factors, cast(m, row, FP64)))


@declare(
    "pto.tget_scale_addr",
    tile("z", "z"),
    example=with_operands(
        _operands(16),
        f"%s = pto.alloc_tile : {_SCALES.format('scaling, 16x2')}; {{op}} ins(%a) outs(%s)"
        "; pto.tmov ins(%m) outs(%s); pto.tmatmul.mx ins(%a, %s, %b, %j) outs(%out)",
    ),
    means=f"out = {_PRODUCT.replace('i[', 'm[')}",
)
def _bind_scales(m: Machine, op: Op, scales: Tile, data: Tile) -> None:
    """Let a tile hold the scales of another: products are given both, so each has bytes of its own here."""


def _numbers(m: Machine, op: Op, a: Tile, left: Tile, b: Tile, right: Tile) -> tuple[Expr, Expr]:
    """Return both matrices as doubles, each element times its power of two: exact."""
    found = [known(extent) for each in (a, b) for extent in each.valid]
    if None in found:
        message = f"`{op.name}` multiplies matrices whose extents are constants here"
        raise PtoValidShapeError(message, help="write v_row and v_col in their types")
    rows, depth, _, cols = (extent or 0 for extent in found)
    if depth % GROUP:
        raise PtoValidShapeError(f"`{op.name}` sums over {depth} elements", help=f"multiples of {GROUP}")
    lhs, rhs = read(m, a, a.valid), read(m, b, (a.valid[1], b.valid[1]))
    left_powers, right_powers = (
        _powers(m, op, left, rows, depth // GROUP),
        _powers(m, op, right, depth // GROUP, cols),
    )
    return by_rows(m, cast(m, lhs, FP32), left_powers), by_columns(m, cast(m, rhs, FP32), right_powers)


def _powers(m: Machine, op: Op, scale: Tile, rows: int, cols: int) -> Expr:
    """Return the powers of two that a tile of exponents stands for."""
    if scale.type.element.name not in EXPONENTS:
        message = f"`{op.name}` takes exponents of one byte, got {scale.type.element}"
        raise PtoTypeMismatchError(message, help="f8E8M0FNU or ui8, one for each 32 elements along the inner axis")
    return powers_of(m, read(m, scale, (m.b.index(rows), m.b.index(cols))))
