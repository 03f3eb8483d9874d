"""Scaled sums: what a loop carries, works on element by element, and adds a product to: attention's averages.

Nobody reads what was carried but the op that makes the accumulator of it, and the loop carries on what the product
leaves. So all three may lie in one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Var
from tilewright.core.op import Kind
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, ForStmt, Stmt, YieldStmt
from tilewright.core.visitor import statements
from tilewright.passes.last_use import reads

_ELEMENTWISE = ("elementwise", "expansion")


def scaled_sums(function: Function) -> list[Stmt]:
    """Return what makes tiles of what a loop carries, to which only products are added."""
    loops = [stmt for stmt in statements(function.body) if isinstance(stmt, ForStmt) and stmt.iter_args]
    tiles = {tile for loop in loops for tile in _sums(loop)}
    counts = reads(function.body) if tiles else Counter[Var]()
    makers = [stmt for loop in loops for stmt in loop.body if isinstance(stmt, AssignStmt) and stmt.var in tiles]
    return [stmt for stmt in makers if counts[stmt.var] == 1]


def _sums(loop: ForStmt) -> Iterator[Var]:
    """Yield what products that a loop carries on are added to, where it is made of what is carried."""
    last = loop.body.stmts[-1] if loop.body.stmts else None
    made = {s.var: s.value for s in loop.body if isinstance(s, AssignStmt) and isinstance(s.value, Call)}
    for arg, value in zip(loop.iter_args, last.values, strict=True) if isinstance(last, YieldStmt) else ():
        call = made.get(value) if isinstance(value, Var) else None
        acc = arguments(call).get("acc") if call is not None and call.op.name == "tile.matmul_acc" else None
        scaled = made.get(acc) if isinstance(acc, Var) else None
        if call is None or scaled is None or scaled.op.kind is not Kind.TILE or not isinstance(acc, Var):
            continue
        if scaled.op.spec.family in _ELEMENTWISE and arg.var in scaled.args:
            yield acc
