"""Scaled products: matrices of small floats, with a power of two for every 32 of them along the inner axis.

The powers are tiles of their exponents, one byte each: as many rows as the left matrix and a column for each 32 of its
columns, a row for each 32 rows of the right matrix and as many columns.
"""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.dtypes import FP8E8M0, FP32, UINT8
from tilewright.ops.builder import element_of, known, tile_type
from tilewright.pto.errors import PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.laws import multiplied
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.formats import seen_as
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import read, write
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Op, Value
from tilewright.pto.op import Constants, declare
from tilewright.pto.text.form import tile
from tilewright.pto.types import TileBuf

GROUP = 32
"""How many elements share a power of two."""
_FLOATS = ("f8E4M3FN", "f8E5M2")
_EXPONENTS = ("f8E8M0FNU", "i8", "ui8", "si8")


def _factors(op: Op) -> tuple[Value, ...]:
    """Return the left matrix, its exponents, the right one and its exponents."""
    return op.ins[1:5] if op.name.endswith(".acc") else op.ins[:4]


def _fits(op: Op, _: Constants) -> None:
    """Refuse other elements, and exponents that are not one for each 32."""
    a, left, b, right = (value.of(TileBuf) for value in _factors(op))
    for value in (a, b):
        if value.element.name not in _FLOATS:
            raise PtoTypeMismatchError(f"`{op.name}` multiplies {', '.join(_FLOATS)}, got {value.element}")
    _check_scale(op, left, (a.rows, -(-a.cols // GROUP)))
    _check_scale(op, right, (-(-b.rows // GROUP), b.cols))
    if a.cols != b.rows or (a.rows, b.cols) != (op.outs[0].of(TileBuf).rows, op.outs[0].of(TileBuf).cols):
        shapes = f"{a.rows}x{a.cols} and {b.rows}x{b.cols}"
        raise PtoValidShapeError(f"`{op.name}` multiplies {shapes} into {op.outs[0].of(TileBuf).rows} rows")


def _check_scale(op: Op, scale: TileBuf, wanted: tuple[int, int]) -> None:
    if scale.element.name not in _EXPONENTS:
        return  # older text has other tiles here, which only a launch has to know
    if (scale.rows, scale.cols) != wanted:
        message = f"`{op.name}` needs {wanted[0]}x{wanted[1]} exponents, got {scale.rows}x{scale.cols}"
        raise PtoValidShapeError(message, help=f"one for each {GROUP} elements along the inner axis")


@declare(
    "pto.tmatmul.mx tgemv.mx",
    tile("zzzz", "z"),
    rule=_fits,
    law=multiplied,
    example="(%a: left16x64xf8E4M3FN, %i: !pto.tile_buf<scaling, 16x2xf8E8M0FNU, slayout=row_major, fractal=32> = 1, "
    "%b: right64x32xf8E4M3FN, %j: !pto.tile_buf<scaling, 2x32xf8E8M0FNU, slayout=row_major, fractal=32> = 1, "
    "%out: acc16x32xf32)"
    "; {op} ins(%a, %i, %b, %j) outs(%out)",
)
def _multiply(m: Machine, op: Op, target: Tile, a: Tile, left: Tile, b: Tile, right: Tile) -> None:
    """The product of two matrices with scales."""
    _write(m, target, a, b, m.b.tile("matmul", *_numbers(m, op, a, left, b, right)))


@declare(
    "pto.tmatmul.mx.acc tgemv.mx.acc",
    tile("zzzzz", "z"),
    rule=_fits,
    law=multiplied,
    example="(%c: acc16x32xf32, %a: left16x64xf8E4M3FN, "
    "%i: !pto.tile_buf<scaling, 16x2xf8E8M0FNU, slayout=row_major, fractal=32> = 1, %b: right64x32xf8E4M3FN, "
    "%j: !pto.tile_buf<scaling, 2x32xf8E8M0FNU, slayout=row_major, fractal=32> = 1, %out: acc16x32xf32)"
    "; {op} ins(%c, %a, %i, %b, %j) outs(%out)",
)
def _accumulate(m: Machine, op: Op, target: Tile, sums: Tile, a: Tile, left: Tile, b: Tile, right: Tile) -> None:
    """The product of two matrices with scales, added to a third."""
    acc = read(m, sums, (a.valid[0], b.valid[1]), (a.type.rows, b.type.cols))
    _write(m, target, a, b, m.b.tile("matmul_acc", acc, *_numbers(m, op, a, left, b, right)))


@declare(
    "pto.tmatmul.mx.bias tgemv.mx.bias",
    tile("zzzzz", "z"),
    rule=_fits,
    law=multiplied,
    example="(%a: left16x64xf8E4M3FN, %i: !pto.tile_buf<scaling, 16x2xf8E8M0FNU, slayout=row_major, fractal=32> = 1, "
    "%b: right64x32xf8E4M3FN, %j: !pto.tile_buf<scaling, 2x32xf8E8M0FNU, slayout=row_major, fractal=32> = 1, "
    "%x: !pto.tile_buf<bias, 1x32xf32>, %out: acc16x32xf32)"
    "; {op} ins(%a, %i, %b, %j, %x) outs(%out)",
)
def _biased(m: Machine, op: Op, target: Tile, a: Tile, left: Tile, b: Tile, right: Tile, bias: Tile) -> None:
    """The product of two matrices with scales, and a row added to each of its rows."""
    row = read(m, bias, (m.b.index(1), b.valid[1]), (1, b.type.cols))
    product = m.b.tile("matmul", *_numbers(m, op, a, left, b, right))
    _write(m, target, a, b, m.b.tile("col_expand_add", product, cast(m, row, FP32)))


def _write(m: Machine, target: Tile, a: Tile, b: Tile, product: Expr) -> None:
    write(m, target, cast(m, product, target.type.element.dtype), covers=(a.valid[0], b.valid[1]))


def _numbers(m: Machine, op: Op, a: Tile, left: Tile, b: Tile, right: Tile) -> tuple[Expr, Expr]:
    """Return both matrices as f32, each element times its power of two: exact, as long as it is a number of f32."""
    for value in (a, b):
        if None in map(known, value.valid) or value.limits != tuple(map(known, value.valid)):
            raise PtoValidShapeError(f"`{op.name}` multiplies whole tiles here", help="let all of them be valid")
    (rows, depth), columns = a.limits, b.limits[1]
    if depth % GROUP:
        raise PtoValidShapeError(f"`{op.name}` sums over {depth} elements", help=f"multiples of {GROUP}")
    groups = depth // GROUP
    short = m.b.tile("reshape", cast(m, read(m, a, a.valid), FP32), (rows * groups, GROUP))
    scale = m.b.tile("reshape", _powers(m, op, left), (rows * groups, 1))
    lhs = m.b.tile("reshape", m.b.tile("row_expand_mul", short, scale), (rows, depth))
    powers = _powers(m, op, right)
    for _ in range(GROUP.bit_length() - 1):
        powers = m.b.tile("concat", powers, powers)
    rhs = m.b.tile("mul", cast(m, read(m, b, b.valid), FP32), m.b.tile("reshape", powers, (depth, columns)))
    return lhs, rhs


def _powers(m: Machine, op: Op, scale: Tile) -> Expr:
    """Return the powers of two that exponents stand for; 255 is no number."""
    if scale.type.element.name not in _EXPONENTS:
        message = f"`{op.name}` takes exponents of one byte, got {scale.type.element}"
        raise PtoTypeMismatchError(message, help="f8E8M0FNU or ui8, one for each 32 elements along the inner axis")
    exponents = read(m, scale, scale.valid)
    if element_of(exponents) != FP8E8M0:
        exponents = seen_as(m, cast(m, exponents, UINT8), FP8E8M0)
    assert tile_type(exponents).dtype == FP8E8M0
    return cast(m, exponents, FP32)
