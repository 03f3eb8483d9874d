"""Few rows: products of so few rows that the matrix they meet is read as it comes, and not made ready for them."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr
from tilewright.core.program import Function
from tilewright.core.types import ShapedType, TileType
from tilewright.core.visitor import evaluated, statements
from tilewright.dtypes import FP32, DataType
from tilewright.passes.products import BIASED, PRODUCTS, SUMS

FEW_ROWS, FEW_FLOATS = 8, 16
"""Rows for which a matrix is better read as it is, and those of fp32 alone, of which several elements make no word.

Sixteen rows by 4096 x 4096 take 2.8 ms on a Zen 5 and 5.3 on an Emerald Rapids, 5.2 and 11 where it is made ready.
"""

MULTIPLYING = (*PRODUCTS, *SUMS, *BIASED)
"""The ops that multiply matrices."""

Factors = tuple[DataType, DataType]


def rows_there(tile: TileType) -> int:
    """Return how many rows of a tile there are at most: those that are valid, where they are known."""
    rows = tile.valid[-2]
    return rows if isinstance(rows, int) else tile.shape[-2]


def most_few(factors: Iterable[Factors]) -> int:
    """Return how many rows of some products are few."""
    return FEW_FLOATS if all(pair == (FP32, FP32) for pair in factors) else FEW_ROWS


def factors_of(functions: Iterable[Function]) -> set[Factors]:
    """Return the types of elements that the products of lowered functions multiply."""
    values = (evaluated(stmt) for function in functions for stmt in statements(function.body))
    products = (value for value in values if isinstance(value, Call) and value.op.spec.name in MULTIPLYING)
    return {pair for product in products for pair in factors(product)}


def factors(product: Call) -> list[Factors]:
    """Return the types of elements that a product multiplies."""
    given = arguments(product)
    a, b = (each.type if isinstance(each, Expr) else None for each in (given["lhs"], given["rhs"]))
    return [(a.dtype, b.dtype)] if isinstance(a, ShapedType) and isinstance(b, ShapedType) else []
