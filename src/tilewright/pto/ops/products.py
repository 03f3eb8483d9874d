"""Products: matrices multiplied into an accumulator. Rows and depth are the left operand's, columns the right one's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tilewright.core.expr import Expr
from tilewright.ops.builder import tile_type
from tilewright.pto.errors import PtoValidShapeError
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import read, write
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare
from tilewright.pto.product_laws import multiplied
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


_BOXES = "{}, valid={}, blayout=col_major, slayout=row_major"
LEFT, ACCUMULATOR = f"!pto.tile_buf<left, {_BOXES}>", f"!pto.tile_buf<acc, {_BOXES}, fractal=1024>"
"""Tiles of which some rows are valid."""


PRODUCT = "np.matmul(a, b, dtype=np.float32)"


def _example(line: str, rows: int = 16) -> str:
    """Return a line with those of the operands that it names: so many rows of the left matrix are valid."""
    operands = {
        "c": ACCUMULATOR.format("16x16xf32", f"{rows}x16"), "a": LEFT.format("16x32xf16", f"{rows}x32"),
        "b": "right32x16xf16", "x": "bias1x16xf32", "out": ACCUMULATOR.format("16x16xf32", f"{rows}x16"),
    }  # fmt: skip
    return with_operands(operands, line)


def with_operands(operands: Mapping[str, str], lines: str) -> str:
    """Return lines of an example behind those of the operands that they name."""
    given = ", ".join(f"%{name}: {type_}" for name, type_ in operands.items() if re.search(rf"%{name}\b", lines))
    return f"({given}); {lines}"


@declare(
    "pto.tmatmul",
    tile("zz", "z"),
    rule=_fits,
    law=multiplied,
    example=_example("{op} ins(%a, %b) outs(%out)"),
    means=PRODUCT,
)
@declare(
    "pto.tgemv",
    tile("zz", "z"),
    rule=_fits,
    law=multiplied,
    example=_example("{op} ins(%a, %b) outs(%out)", 1),
    means=PRODUCT,
)
def _multiply(m: Machine, op: Op, target: Tile, a: Tile, b: Tile) -> None:
    """The product of two matrices."""
    _write(m, target, a, b, m.b.tile("matmul", *_factors(m, a, b)))


@declare(
    "pto.tmatmul.acc",
    tile("zzz", "z"),
    rule=_fits,
    law=multiplied,
    example=_example("{op} ins(%c, %a, %b) outs(%out)"),
    means=f"c + {PRODUCT}",
)
@declare(
    "pto.tgemv.acc",
    tile("zzz", "z"),
    rule=_fits,
    law=multiplied,
    example=_example("{op} ins(%c, %a, %b) outs(%out)", 1),
    means=f"c + {PRODUCT}",
)
def _accumulate(m: Machine, op: Op, target: Tile, sums: Tile, a: Tile, b: Tile) -> None:
    """The product of two matrices added to a third."""
    lhs, rhs = _factors(m, a, b)
    acc = read(m, sums, (a.valid[0], b.valid[1]), (a.type.rows, b.type.cols))
    _write(m, target, a, b, m.b.tile("matmul_acc", acc, lhs, rhs))


@declare(
    "pto.tmatmul.bias",
    tile("zzz", "z"),
    rule=_fits,
    law=multiplied,
    example=_example("{op} ins(%a, %b, %x) outs(%out)"),
    means=f"{PRODUCT} + x",
)
@declare(
    "pto.tgemv.bias",
    tile("zzz", "z"),
    rule=_fits,
    law=multiplied,
    example=_example("{op} ins(%a, %b, %x) outs(%out)", 1),
    means=f"{PRODUCT} + x",
)
def _biased(m: Machine, op: Op, target: Tile, a: Tile, b: Tile, bias: Tile) -> None:
    """The product of two matrices, and a row added to each of its rows."""
    lhs, rhs = _factors(m, a, b)
    row = read(m, bias, (m.b.index(1), b.valid[1]), (1, b.type.cols))
    product = m.b.tile("matmul", lhs, rhs)
    _write(m, target, a, b, m.b.tile("col_expand_add", product, cast(m, row, tile_type(product).dtype)))


def _write(m: Machine, target: Tile, a: Tile, b: Tile, product: Expr) -> None:
    write(m, target, cast(m, product, target.type.element.dtype), covers=(a.valid[0], b.valid[1]))
