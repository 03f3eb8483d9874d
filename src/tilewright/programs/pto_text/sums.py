"""Sums: products that the turns of a loop add up, which stay in the cube's accumulator from turn to turn.

What the cube adds is rounded once, as `pl.matmul_acc` says it; a sum that is carried elsewhere is added to there, and
rounded twice. Nothing leads back to an accumulator, so a sum that begins with zeros begins with its first product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tilewright.core.expr import Call, Expr, Var
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, ForStmt, SeqStmts, YieldStmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements, used, variables
from tilewright.programs.pto_text.readers import takes
from tilewright.programs.pto_text.values import element

_ADDS = {"tile.matmul_acc": "tmatmul", "tile.matmul_mx_acc": "tmatmul.mx"}
"""The products that are added to something, and what the cube does for them."""


def uses(functions: Iterable[Function]) -> Mapping[Var, int]:
    """Return how often each variable of some functions is an operand."""
    return Counter(var for function in functions for var in _operands(function.body))


def sum_of(stmt: ForStmt, position: int, count: Mapping[Var, int]) -> Call | None:
    """Return the product that a loop adds to something it carries, None where it does anything else with that."""
    carried = stmt.iter_args[position].var
    handed = next((s.values[position] for s in stmt.body if isinstance(s, YieldStmt)), None)
    made = next((s.value for s in stmt.body if isinstance(s, AssignStmt) and s.var is handed), None)
    if not isinstance(made, Call) or made.op.name not in _ADDS or made.args[0] is not carried or not _is_taken(made):
        return None
    return made if isinstance(handed, Var) and count[carried] == count[handed] == 1 else None


def _is_taken(product: Call) -> bool:
    """Return whether the cube multiplies elements of such a type."""
    added, factor = product.type, product.args[1].type
    assert isinstance(added, TileType) and isinstance(factor, TileType)
    return takes(_ADDS[product.op.name], element(factor.dtype), element(added.dtype))


def is_used_up(init: Expr, count: Mapping[Var, int]) -> bool:
    """Return whether nobody but a loop uses what it starts from."""
    return isinstance(init, Var) and count[init] == 1


def _operands(body: SeqStmts) -> list[Var]:
    return [var for stmt in statements(body) for expr in used(stmt) for var in variables([expr])]
