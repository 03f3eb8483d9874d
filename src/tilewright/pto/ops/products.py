"""Products: matrices multiplied into an accumulator. Rows and depth are the left operand's, columns the right one's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tilewright.core.expr import Expr
from tilewright.ops.builder import tile_type
from tilewright.ops.product_types import accumulator
from tilewright.pto.errors import PtoOperandError, PtoValidShapeError
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import read, write
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, Lowering, Rule, declare
from tilewright.pto.product_laws import multiplied
from tilewright.pto.text.form import tile
from tilewright.pto.types import Space, TileBuf
from tilewright.records import record


def _factors(m: Machine, a: Tile, b: Tile) -> tuple[Expr, Expr]:
    return read(m, a, a.valid), read(m, b, (a.valid[1], b.valid[1]), (a.type.cols, b.type.cols))


def _fits(op: Op, _: Constants) -> None:
    a, b = (op.ins[1:] if op.name.endswith(".acc") else op.ins)[:2]
    lhs, rhs, out = a.type, b.type, op.outs[0].type
    assert isinstance(lhs, TileBuf) and isinstance(rhs, TileBuf) and isinstance(out, TileBuf)
    if (lhs.space, rhs.space) == (Space.RIGHT, Space.LEFT):
        message = f"`{op.name}` takes a tile in left, then one in right: `%{a.name}` lies in right, `%{b.name}` in left"
        raise PtoOperandError(message, help=f"swap them: `%{b.name}, %{a.name}`")
    if lhs.valid_cols is not None and lhs.valid_cols > rhs.rows:
        message = f"`%{a.name}` has {lhs.valid_cols} columns, `%{b.name}` {rhs.rows} rows"
        raise PtoValidShapeError(message, help="make the inner extents equal")
    if (lhs.valid_rows or 0) > out.rows or (rhs.valid_cols or 0) > out.cols:
        product = f"{lhs.valid_rows or '?'}x{rhs.valid_cols or '?'}"
        message = f"the product is {product}, `%{op.outs[0].name}` holds {out.rows}x{out.cols}"
        raise PtoValidShapeError(message, help=f"make `%{op.outs[0].name}` as large as the product")


_BOXES = "{}, valid={}, blayout=col_major, slayout=row_major"
LEFT, ACCUMULATOR = f"!pto.tile_buf<left, {_BOXES}>", f"!pto.tile_buf<acc, {_BOXES}, fractal=1024>"
"""Tiles of which some rows are valid."""


@record
class Products:
    """Products that are declared alike, of matrices (`tmatmul`) and of a row with a matrix (`tgemv`)."""

    rule: Rule
    operands: Callable[[int], Mapping[str, str]]
    """What examples take by name, where so many rows of the left matrix are valid."""

    def declared(self, suffix: str, ins: str, means: str) -> Callable[[Lowering], Lowering]:
        """Declare the two products of a suffix, on operands that are named as in examples."""

        def signed_in(lowering: Lowering) -> Lowering:
            for name, rows in (("tmatmul", 16), ("tgemv", 1)):
                declare(
                    f"pto.{name}{suffix}",
                    tile("z" * ins.count("%"), "z"),
                    rule=self.rule,
                    law=multiplied,
                    example=with_operands(self.operands(rows), f"{{op}} ins({ins}) outs(%out)"),
                    means=means,
                )(lowering)
            return lowering

        return signed_in


def with_operands(operands: Mapping[str, str], lines: str) -> str:
    """Return lines of an example behind those of the operands that they name."""
    given = ", ".join(f"%{name}: {type_}" for name, type_ in operands.items() if re.search(rf"%{name}\b", lines))
    return f"({given}); {lines}"


def _operands(rows: int) -> dict[str, str]:
    sums, left = ACCUMULATOR.format("16x16xf32", f"{rows}x16"), LEFT.format("16x32xf16", f"{rows}x32")
    return {"c": sums, "a": left, "b": "right32x16xf16", "x": "bias1x16xf32", "out": sums}


_PLAIN = Products(_fits, _operands)
_PRODUCT = "np.matmul(a, b, dtype=np.float32)"


@_PLAIN.declared("", "%a, %b", _PRODUCT)
def _multiply(m: Machine, op: Op, target: Tile, a: Tile, b: Tile) -> None:
    """The product of two matrices."""
    write_product(m, target, a, b, m.b.tile("matmul", *_factors(m, a, b)))


@_PLAIN.declared(".acc", "%c, %a, %b", f"c + {_PRODUCT}")
def _accumulate(m: Machine, op: Op, target: Tile, sums: Tile, a: Tile, b: Tile) -> None:
    """The product of two matrices added to a third."""
    lhs, rhs = _factors(m, a, b)
    acc = read(m, sums, (a.valid[0], b.valid[1]), (a.type.rows, b.type.cols))
    write_product(m, target, a, b, m.b.tile("matmul_acc", acc, lhs, rhs))


@_PLAIN.declared(".bias", "%a, %b, %x", f"{_PRODUCT} + x")
def _biased(m: Machine, op: Op, target: Tile, a: Tile, b: Tile, bias: Tile) -> None:
    """The product of two matrices, and a row added to each of its rows."""
    lhs, rhs = _factors(m, a, b)
    row = read(m, bias, (m.b.index(1), b.valid[1]), (1, b.type.cols))
    sums = cast(m, row, accumulator(tile_type(lhs).dtype))
    write_product(m, target, a, b, m.b.tile("matmul_bias", lhs, rhs, sums))


def write_product(m: Machine, target: Tile, a: Tile, b: Tile, product: Expr) -> None:
    """Write as many rows as the left matrix has and as many columns as the right one."""
    write(m, target, cast(m, product, target.type.element.dtype), covers=(a.valid[0], b.valid[1]))
