"""Products: matrices multiplied into an accumulator. Rows and depth are the left operand's, columns the right one's."""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.ops.builder import tile_type
from tilewright.pto.errors import PtoValidShapeError
from tilewright.pto.laws import multiplied
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import read, write
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare
from tilewright.pto.text.form import tile
from tilewright.pto.types import TileBuf


def _factors(m: Machine, a: Tile, b: Tile) -> tuple[Expr, Expr]:
    return read(m, a, a.valid), read(m, b, (a.valid[1], b.valid[1]), (a.type.cols, b.type.cols))


def _fits(op: Op, _: Constants) -> None:
    a, b = (op.ins[1:] if op.name.endswith(".acc") else op.ins)[:2]
    lhs, rhs, out = a.type, b.type, op.outs[0].type
    assert isinstance(lhs, TileBuf) and isinstance(rhs, TileBuf) and isinstance(out, TileBuf)
    if lhs.valid_cols is not None and lhs.valid_cols > rhs.rows:
        raise PtoValidShapeError(f"`%{a.name}` has {lhs.valid_cols} columns, `%{b.name}` {rhs.rows} rows")
    if (lhs.valid_rows or 0) > out.rows or (rhs.valid_cols or 0) > out.cols:
        product = f"{lhs.valid_rows or '?'}x{rhs.valid_cols or '?'}"
        raise PtoValidShapeError(f"the product is {product}, `%{op.outs[0].name}` holds {out.rows}x{out.cols}")


@declare(
    "pto.tmatmul tgemv",
    tile("zz", "z"),
    rule=_fits,
    law=multiplied,
    example="(%a: left16x32xf16, %b: right32x16xf16, %out: acc16x16xf32); {op} ins(%a, %b) outs(%out)",
)
def _multiply(m: Machine, op: Op, target: Tile, a: Tile, b: Tile) -> None:
    """The product of two matrices."""
    _write(m, target, a, b, m.b.tile("matmul", *_factors(m, a, b)))


@declare(
    "pto.tmatmul.acc tgemv.acc",
    tile("zzz", "z"),
    rule=_fits,
    law=multiplied,
    example="(%c: acc16x16xf32, %a: left16x32xf16, %b: right32x16xf16, %out: acc16x16xf32)"
    "; {op} ins(%c, %a, %b) outs(%out)",
)
def _accumulate(m: Machine, op: Op, target: Tile, sums: Tile, a: Tile, b: Tile) -> None:
    """The product of two matrices added to a third."""
    lhs, rhs = _factors(m, a, b)
    acc = read(m, sums, (a.valid[0], b.valid[1]), (a.type.rows, b.type.cols))
    _write(m, target, a, b, m.b.tile("matmul_acc", acc, lhs, rhs))


@declare(
    "pto.tmatmul.bias tgemv.bias",
    tile("zzz", "z"),
    rule=_fits,
    law=multiplied,
    example="(%a: left16x32xf16, %b: right32x16xf16, %x: !pto.tile_buf<bias, 1x16xf32>, %out: acc16x16xf32)"
    "; {op} ins(%a, %b, %x) outs(%out)",
)
def _biased(m: Machine, op: Op, target: Tile, a: Tile, b: Tile, bias: Tile) -> None:
    """The product of two matrices, and a row added to each of its rows."""
    lhs, rhs = _factors(m, a, b)
    row = read(m, bias, (m.b.index(1), b.valid[1]), (1, b.type.cols))
    product = m.b.tile("matmul", lhs, rhs)
    _write(m, target, a, b, m.b.tile("col_expand_add", product, cast(m, row, tile_type(product).dtype)))


def _write(m: Machine, target: Tile, a: Tile, b: Tile, product: Expr) -> None:
    write(m, target, cast(m, product, target.type.element.dtype), covers=(a.valid[0], b.valid[1]))
