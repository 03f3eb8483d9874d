"""Other tiles: what becomes of a program whose tiles are chosen for it, and which programs may have some."""

from __future__ import annotations

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr
from tilewright.core.program import Program
from tilewright.core.types import ShapedType
from tilewright.core.visitor import evaluated, statements
from tilewright.dtypes import DataType
from tilewright.passes.products import BIASED, PRODUCTS, SUMS
from tilewright.records import record

MULTIPLYING = (*PRODUCTS, *SUMS, *BIASED)


@record
class Widened:
    """A program with other tiles, and what was changed, a line for each grid."""

    program: Program
    notes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    """What runs on a machine's units for matrices, a line for each kind of product."""

    def __str__(self) -> str:
        return "\n".join((*(self.notes or ["every tile is as it was written"]), *self.units, ""))


def operand_types(program: Program) -> set[tuple[DataType, DataType]]:
    """Return the types of elements that the products of a lowered program multiply."""
    values = (evaluated(stmt) for function in program.function_list for stmt in statements(function.body))
    made = (arguments(value) for value in values if isinstance(value, Call) and value.op.spec.name in MULTIPLYING)
    pairs = ([each.type for each in (given["lhs"], given["rhs"]) if isinstance(each, Expr)] for given in made)
    return {(a.dtype, b.dtype) for a, b in pairs if isinstance(a, ShapedType) and isinstance(b, ShapedType)}


def may_be_widened(program: Program) -> bool:
    """Return whether a lowered program has ops that some tiles suit better than others: products, folded columns."""
    values = (evaluated(stmt) for function in program.function_list for stmt in statements(function.body))
    specs = [value.op.spec for value in values if isinstance(value, Call)]
    return any(s.name in MULTIPLYING or s.family == "reduction" and s.name[:3] == "col" for s in specs)
