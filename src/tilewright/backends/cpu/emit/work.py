"""Work: roughly how much statements do, in units of about one scalar instruction.

The estimate decides how often a loop looks whether its program is over, which it may do a hundred times too often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.core.expr import Call, ConstInt, Expr, Invoke, Submit
from tilewright.core.op import Kind, OpSpec
from tilewright.core.program import Program
from tilewright.core.stmt import ForStmt, IfStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import bodies, expressions
from tilewright.records import record

SPAN = 1 << 20
"""Units between two looks: 30 microseconds of the quickest work, some milliseconds of the slowest."""

PIECE = SPAN // 16
"""What counts as work whose size nobody knows: a row of a tensor, a call of a function that looks for itself."""

LONG = SPAN * 16
"""Work on one tile or tensor that is not done without a look."""

STRIP = 1 << 14
"""Work of a loop inside another that it does not count; less would end its inner loop too often to be foreseen."""

_INSIDE = STRIP // 16
"""What the loop around it counts for that in each of its turns; more would have it look too often."""

SMALL = 256
"""Work that is not worth being counted by itself."""

ELEMENTS = 4
"""How many elements of a tile, or products of a matrix product, are one unit."""

_MOVING = frozenset({"load", "store", "slice", "move", "create", "full", "fillpad", "read", "write", "cast", "reshape"})
_FOLDS = frozenset({"partial", "reduction"})
_LIGHT = _FOLDS | {"elementwise", "mapped", "expansion", "position"}


@record
class Work:
    """How much statements do, apart from what the loops among them count that look, and whether there are any."""

    units: int = 0
    looks: bool = False


class Estimate:
    """How much the functions of a program do."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._functions: dict[str, int] = {}

    def body(self, body: SeqStmts) -> Work:
        """Return what statements do."""
        return _sum([self._stmt(stmt) for stmt in body])

    def short(self, loop: ForStmt) -> int | None:
        """Return what a loop does that surely ends soon, and so counts among what is around it; None for others."""
        turns = _turns(loop)
        if turns is None:
            return None
        work = self.body(loop.body)
        whole = turns * (1 + work.units)
        return None if work.looks or whole > SPAN else whole

    def least(self, stmt: IfStmt) -> Work:
        """Return what a branch does whichever way it goes."""
        sides = [self.body(stmt.then_body), self.body(stmt.else_body or SeqStmts())]
        return Work(min(side.units for side in sides), any(side.looks for side in sides))

    def call(self, name: str) -> int:
        """Return what a call of a function does."""
        if name not in self._functions:
            work = self.body(self.program[name].body)
            self._functions[name] = work.units + work.looks * PIECE
        return self._functions[name]

    def tile_work(self, call: Call) -> int:
        """Return what an op on tiles does."""
        if is_product(call):
            return 1 + products(call) // ELEMENTS
        sizes = [math.prod(x.type.shape) for x in (call, *call.args) if isinstance(x.type, TileType)]
        return 1 + max(sizes, default=0) * _weight(call.op.spec) // ELEMENTS

    def _stmt(self, stmt: Stmt) -> Work:
        own = Work(1 + sum(map(self._expr, expressions(stmt))))
        if isinstance(stmt, ForStmt):
            short = self.short(stmt)
            return _sum([own, Work(_INSIDE, looks=True) if short is None else Work(short)])
        if isinstance(stmt, WhileStmt):
            return Work(own.units, looks=True)
        if isinstance(stmt, IfStmt):
            return _sum([own, self.least(stmt)])
        return _sum([own, *map(self.body, bodies(stmt))])

    def _expr(self, expr: Expr) -> int:
        if isinstance(expr, (Invoke, Submit)):
            return self.call(expr.op.name)
        if not isinstance(expr, Call) or expr.op.kind is not Kind.TILE:
            return PIECE if _moves_tensors(expr) else 1
        return self.tile_work(expr)


def is_product(call: Call) -> bool:
    """Return whether an op multiplies matrices."""
    return "matmul" in call.op.name or "gemv" in call.op.name


def is_light(spec: OpSpec) -> bool:
    """Return whether an op takes about as long as an addition; a sum's error is only that of its order."""
    return spec.family in _FOLDS or (_weight(spec) == 1 and spec.family != "position")


def products(call: Call) -> int:
    """Return how many numbers a product of matrices multiplies."""
    sizes = [math.prod(x.type.shape) for x in (call, *call.args) if isinstance(x.type, TileType)]
    return max(*sizes, math.isqrt(math.prod(sorted(sizes)[-3:])))  # of m k, k n and m n that is m n k


def _moves_tensors(expr: Expr) -> bool:
    """Return whether an op makes or fills whole tensors, however large they are; a write of one element does not."""
    if not isinstance(expr, Call) or expr.op.kind is not Kind.TENSOR or not isinstance(expr.type, TensorType):
        return False
    return not expr.op.spec.is_view and expr.op.spec.name != "write"


def _weight(spec: OpSpec) -> int:
    """Return how many instructions an op takes where an addition takes one."""
    if spec.name in _MOVING or spec.family in _LIGHT:
        return 4 if spec.ulp else 1
    return 16


def _sum(works: Sequence[Work]) -> Work:
    return Work(sum(work.units for work in works), any(work.looks for work in works))


def _turns(loop: ForStmt) -> int | None:
    """Return how many turns a loop has at most, where that is known while compiling."""
    start, stop, step = (
        int(end.value) if isinstance(end, ConstInt) else None for end in (loop.start, loop.stop, loop.step)
    )
    if start is None or stop is None or not step:
        return None
    return max(-((start - stop) // step), 0)
