"""Joined products: products added up one after the other whose operands adjoin, as one product of longer operands.

Kernels that fetch operands while they multiply name two of each, and take two steps of a sum a turn; others write the
parts of a tile that they multiply one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments, call
from tilewright.core.expr import ABSENT, Absent, Call, Expr, MakeTuple, Var, integer
from tilewright.core.op import Effect, Kind
from tilewright.core.operands import Argument
from tilewright.core.program import Function
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt
from tilewright.core.types import TileType, is_fully_valid
from tilewright.core.visitor import statements
from tilewright.passes.last_use import reads
from tilewright.passes.linear import distance
from tilewright.passes.strided_steps import CHECK, numbers_of, window_of
from tilewright.records import record

AXES = {"lhs": 1, "rhs": 0}
"""The axes that are summed over."""


def joined_products(function: Function, depth: int) -> Function:
    """Return a function whose products adjoin no others, as long as they sum over no more than a depth."""
    sums = [stmt for stmt in statements(function.body) if _sum(stmt) is not None]
    return function.with_body(_Joining(reads(function.body), depth).body(function.body)) if len(sums) > 1 else function


class _Joining(Rewriter):
    def __init__(self, counts: Counter[Var], depth: int) -> None:
        super().__init__()
        self.counts, self.depth = counts, depth

    def body(self, body: SeqStmts) -> SeqStmts:
        """Join the products of a body, two at a time."""
        stmts = list(body.stmts)
        at = 0
        while at < len(stmts):
            made = self._joined(stmts, at)
            stmts, at = (stmts, at + 1) if made is None else made
        return super().body(body if len(stmts) == len(body.stmts) else SeqStmts(tuple(stmts)))

    def _joined(self, stmts: list[Stmt], at: int) -> tuple[list[Stmt], int] | None:
        """Return statements in which a product takes in the one before it, and where it stands then."""
        last, product = stmts[at], _sum(stmts[at])
        before = _maker(stmts[:at], arguments(product)["acc"]) if product is not None else None
        first = _sum(stmts[before]) if before is not None else None
        if product is None or first is None or before is None or not isinstance(last, AssignStmt):
            return None
        if self._is_read_again(arguments(product)["acc"]) or not _always_adds(product):
            return None
        calls = {s.var: s.value for s in stmts[:at] if isinstance(s, AssignStmt) and isinstance(s.value, Call)}
        parts = [_adjoining(calls, first, product, name) for name in AXES]
        found = [part for part in parts if part is not None and part.length <= self.depth]
        gone = {var for part in found for var in part.gone if self.counts[var] == 1} | {_made(stmts[before])}
        since = min((number for number in range(at) if _made(stmts[number]) in gone), default=at)
        if len(found) < len(parts) or not all(_only_reads(stmt) for stmt in stmts[since:at]):
            return None
        given = {**arguments(first), **{name: part.tile for name, part in zip(AXES, found, strict=True)}}
        whole = AssignStmt(last.var, call(first.op.spec, given, product.span), last.span)
        left = [stmt for stmt in stmts[:at] if _made(stmt) not in gone]
        made = [*left, *(stmt for part in found for stmt in part.stmts), whole]
        self.counts.update({part.tile: 1 for part in found})
        return [*made, *stmts[at + 1 :]], len(made) - 1

    def _is_read_again(self, total: Argument) -> bool:
        return isinstance(total, Var) and self.counts[total] > 1


@record
class _Part:
    """An operand as long as two that adjoin, what makes it, and what those two were made of."""

    tile: Var
    length: int
    stmts: Sequence[AssignStmt]
    gone: Sequence[Var]


def _adjoining(made: Mapping[Var, Call], first: Call, second: Call, name: str) -> _Part | None:
    """Return an operand of two products as one, None where they do not adjoin."""
    one, other, axis = arguments(first)[name], arguments(second)[name], AXES[name]
    if not isinstance(one, Var) or not isinstance(other, Var):
        return None
    return _of_windows(made, one, other, axis) or _of_slices(made, one, other, axis)


def _of_windows(made: Mapping[Var, Call], one: Var, other: Var, axis: int) -> _Part | None:
    """Return two windows of a buffer as one."""
    first, second = window_of(made, one, axis), window_of(made, other, axis)
    if first is None or second is None or distance(made, first.offset, second.offset) != first.nbytes:
        return None
    seen, next_seen = arguments(made[first.view]), arguments(made[second.view])
    shape, sides = numbers_of(seen["shape"]), numbers_of(next_seen["shape"])
    if shape is None or sides is None or shape[1 - axis] != sides[1 - axis]:
        return None
    if any(seen[name] != next_seen[name] for name in ("buffer", "strides", "dtype")):
        return None
    length = first.length + second.length
    extents = _tuple([length if side == axis else extent for side, extent in enumerate(shape)])
    view = _again(made[first.view], first.view, shape=extents)
    tile = _again(made[one], one, tensor=view.var, shapes=extents)
    return _Part(tile.var, length, (view, tile), (one, other, first.view, second.view))


def _of_slices(made: Mapping[Var, Call], one: Var, other: Var, axis: int) -> _Part | None:
    """Return two slices of a tile as one."""
    cuts = [made.get(one), made.get(other)]
    found = [(arguments(cut), cut.type) for cut in cuts if cut is not None and cut.op.name == "tile.slice"]
    if len(found) != 2 or not all(_is_plain(given) for given, _ in found):
        return None
    (first, type_), (second, next_type) = found
    starts, next_starts = numbers_of(first["offset"]), numbers_of(second["offset"])
    whole, across = first["x"], 1 - axis
    if starts is None or next_starts is None or len(starts) != 2 or whole is not second["x"]:
        return None
    if not isinstance(type_, TileType) or not isinstance(next_type, TileType) or not isinstance(whole, Var):
        return None
    alike = starts[across] == next_starts[across] and type_.shape[across] == next_type.shape[across]
    is_whole = isinstance(whole.type, TileType) and is_fully_valid(whole.type)
    if not alike or not is_whole or next_starts[axis] != starts[axis] + type_.shape[axis]:
        return None
    length = type_.shape[axis] + next_type.shape[axis]
    shape = [length if side == axis else extent for side, extent in enumerate(type_.shape)]
    cut = cuts[0]
    assert cut is not None
    made_of = _again(cut, one, shape=_tuple(shape))
    return _Part(made_of.var, length, (made_of,), (one, other))


def _again(made: Call, var: Var, **others: Argument) -> AssignStmt:
    """Return what makes a tile or a view of the same name, with other arguments."""
    value = call(made.op.spec, {**arguments(made), **others}, made.span)
    return AssignStmt(Var(var.name_hint, value.type, var.span), value, made.span)


def _tuple(numbers: Sequence[int]) -> MakeTuple:
    return MakeTuple(tuple(map(integer, numbers)))


def _is_plain(given: Mapping[str, Argument]) -> bool:
    return not given.get("drop_dims") and isinstance(given.get("valid_shape") or ABSENT, Absent)


def _always_adds(product: Call) -> bool:
    return isinstance(arguments(product).get("init_cond") or ABSENT, Absent)


def _sum(stmt: Stmt) -> Call | None:
    """Return the product that a statement adds to a sum."""
    value = stmt.value if isinstance(stmt, AssignStmt) else None
    return value if isinstance(value, Call) and value.op.name == "tile.matmul_acc" else None


def _made(stmt: Stmt) -> Var | None:
    return stmt.var if isinstance(stmt, AssignStmt) else None


def _maker(stmts: Sequence[Stmt], tile: Argument) -> int | None:
    """Return which statement makes a tile."""
    return next((number for number, stmt in enumerate(stmts) if _made(stmt) is tile), None)


def _only_reads(stmt: Stmt) -> bool:
    """Return whether a statement makes a number, a view or a tile, or checks a number."""
    value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
    if isinstance(stmt, EvalStmt):
        return isinstance(value, Call) and value.op.name == CHECK
    if not isinstance(value, Call):
        return isinstance(value, Expr)
    return value.op.kind is Kind.SCALAR or value.op.name == "tensor.as_strided" or _computes(value)


def _computes(value: Call) -> bool:
    return value.op.kind is Kind.TILE and value.op.spec.effect is not Effect.WRITE
