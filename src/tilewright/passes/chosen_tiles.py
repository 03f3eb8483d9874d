"""Other tiles: what becomes of a program whose tiles are chosen for it, and which programs may have some."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.core.program import Program
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import evaluated, statements
from tilewright.passes.few_rows import MULTIPLYING
from tilewright.records import record

SHORT = 1024
"""How many columns a tile has at least that goes along its rows for long enough."""


@record
class Widened:
    """A program with other tiles, and what was changed, a line for each grid."""

    program: Program
    notes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    """What runs on a machine's units for matrices, a line for each kind of product."""

    def __str__(self) -> str:
        return "\n".join((*(self.notes or ["every tile is as it was written"]), *self.units, ""))


def may_be_widened(program: Program) -> bool:
    """Return whether a lowered program has ops that some tiles suit better: products, folded columns, turned tiles."""
    values = (evaluated(stmt) for function in program.function_list for stmt in statements(function.body))
    specs = [value.op.spec for value in values if isinstance(value, Call)]
    turning = (*MULTIPLYING, "transpose", "transpose_view")
    return any(s.name in turning or s.family == "reduction" and s.name[:3] == "col" for s in specs)


def may_have_long_rows(program: Program) -> bool:
    """Return whether a lowered program stores tiles that have a few columns of a tensor with more."""
    values = (evaluated(stmt) for function in program.function_list for stmt in statements(function.body))
    return any(isinstance(v, Call) and v.op.spec.name == "store" and _has_few_columns(v) for v in values)


def _has_few_columns(store: Call) -> bool:
    tile = next(a.type for a in store.args if isinstance(a.type, TileType))
    tensor = next(a.type for a in store.args if isinstance(a.type, TensorType))
    few, extent = tile.shape[-1], tensor.shape[-1]
    return few < SHORT and not (isinstance(extent, int) and extent <= few)
